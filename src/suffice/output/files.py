"""Files are written beside their place and renamed into it: a reader, or a crash, never sees half a file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from suffice.errors import FormatError


@contextmanager
def replacing(path: str | PathLike[str], *, lasting: bool = False) -> Iterator[Path]:
    """A temporary path to write to, which takes the place of `path` when the block ends well and is removed when it does not.

    With `lasting` the block's bytes are on the disk before they take its place, and the new name is when this ends.

    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> with replacing(target) as place:
    ...     _ = place.write_text("done")
    >>> target.read_text()
    'done'
    """
    target = Path(path)
    if target.is_dir():
        raise FormatError("this is a directory; give the name of a file", path=target)
    place = target.parent / f".{target.name[:32]}.{secrets.token_hex(8)}.part"
    try:  # from before the file is there: an interrupt may come at any time
        try:
            place.open("xb").close()
        except OSError as error:
            raise FormatError(f"the file cannot be written: {error.strerror}", path=target) from None
        yield place
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(place, 0o666 & ~mask)
        if lasting:
            _sync(place)
        os.replace(place, target)
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    if lasting and os.name != "nt":  # there, directories cannot be opened
        _sync(target.parent)


def _sync(path: Path) -> None:
    """Wait until what was written is on the disk."""
    number = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(number)
    finally:
        os.close(number)
