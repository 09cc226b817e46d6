"""What must be so before any test module is imported."""

import os

# Triton decides when it is imported whether kernels are compiled for a GPU or interpreted, and tests interpret them.
os.environ.setdefault("TRITON_INTERPRET", "1")
