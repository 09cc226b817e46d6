"""A video as a file that is whole or not there, frame by frame."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from curious_explorer.optional_packages import require

ENCODING = "-crf 20 -preset veryfast -movflags +faststart"
"""Good quality, fast, and an index at the front so that a browser can begin before it has everything."""


@contextmanager
def video_file(
    path: Path, width: int, height: int, *, frames_a_second: float, output_rate: float | None = None
) -> Iterator[Callable[[Any], None]]:
    """Gives a function that takes frames, shape (height, width, 3); odd sizes lose their last row or column.

    Args:
        path: the file; replaced when all frames are there.
        width: of a frame.
        height: of a frame.
        frames_a_second: how fast they follow each other.
        output_rate: frames a second in the file, if others; some players stumble over a single one a second.
    """
    ffmpeg = require("imageio_ffmpeg")
    width, height = width - width % 2, height - height % 2  # as the yuv420p pixel format wants them
    # A name of its own: the encoder of a process that was killed may still be writing to another.
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    writer = ffmpeg.write_frames(
        str(temporary),
        (width, height),
        fps=frames_a_second,
        codec="libx264",
        pix_fmt_out="yuv420p",
        macro_block_size=2,
        quality=None,
        bitrate=None,
        ffmpeg_log_level="error",
        output_params=[*ENCODING.split(), "-r", str(output_rate or frames_a_second), "-f", "mp4"],
    )

    def write(frame: Any) -> None:
        writer.send(np.ascontiguousarray(np.asarray(frame)[:height, :width], dtype=np.uint8).tobytes())

    try:
        writer.send(None)
        yield write
        writer.close()
        os.replace(temporary, path)
    except (BrokenPipeError, OSError) as error:
        raise OSError(
            error.errno or errno.EIO, f"the video could not be written ({error}); is the disk full?"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            writer.close()
        temporary.unlink(missing_ok=True)
