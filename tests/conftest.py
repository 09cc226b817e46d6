"""What must be so before any test module is imported."""

import os
import signal

# Triton decides when it is imported whether kernels are compiled for a GPU or interpreted, and tests interpret them.
os.environ.setdefault("TRITON_INTERPRET", "1")

# A shell that runs the tests in the background has SIGINT ignored, and so would every process that tests start and
# interrupt: ignored signals are inherited, handled ones are not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
