"""Files: bytes and text out of them, compressed or not; and into them, written beside their place and renamed into it, so that
a reader, or a crash, never sees half a file."""

from __future__ import annotations

import gzip
import os
import re
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from suffice.errors import FormatError, TooLarge, bytes_in_words


@contextmanager
def replacing(path: str | PathLike[str], *, lasting: bool = False) -> Iterator[Path]:
    """A temporary path to write to, which takes the place of `path` when the block ends well and is removed when it does not.
    With `lasting` the block's bytes are on the disk before they take its place, and the new name is when this ends."""
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


MAX_BYTES = 2**30
"""No file with more text is read."""

MAX_EXPANSION = 100
"""A compressed file may hold this many times its size; or 16 MiB, if that is more."""

_CHUNK = 2**20
_ENCODING = re.compile(rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_ALLOWED = re.compile(r"utf-?(?:8|16|16le|16be)|(?:us-)?ascii|iso-?8859-\d{1,2}|latin-?\d|(?:windows|cp)-?125\d", re.IGNORECASE)


def text_of(path: Path, *, compressed: bool = False, xml: bool = False) -> str:
    """The text of a file: UTF-8, or for XML what it declares; a byte order mark is dropped, line ends become newlines."""
    data = _bytes_of(path, compressed)
    encoding = _encoding(path, data) if xml else "utf-8"
    if encoding == "utf-8" and data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wanted = "UTF-8" if encoding == "utf-8" else encoding
        raise FormatError(f"byte {error.start + 1} of the file is not {wanted}", path=path, line=line) from None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _bytes_of(path: Path, compressed: bool) -> bytes:
    try:
        if path.is_dir():
            raise FormatError("this is a directory; give the name of a file", path=path)
        size = path.stat().st_size
        limit = min(MAX_BYTES, max(2**24, MAX_EXPANSION * size)) if compressed else MAX_BYTES
        with gzip.open(path) if compressed else path.open("rb") as file:
            chunks, total = [], 0
            while chunk := file.read(_CHUNK):
                chunks.append(chunk)
                total += len(chunk)
                if total > limit:
                    advice = "; decompress it first if you trust it" if limit < MAX_BYTES else ""
                    raise TooLarge(
                        f"{path}: the text is larger than {bytes_in_words(limit)}, the most that is read of it{advice}"
                    )
        return b"".join(chunks)
    except (EOFError, zlib.error):
        raise FormatError("the compressed file is cut off or broken", path=path) from None
    except gzip.BadGzipFile:
        raise FormatError("the file is not compressed by gzip, or it is broken", path=path) from None
    except OSError as error:
        raise FormatError(f"the file cannot be read: {error.strerror}", path=path) from None
    except ValueError as error:
        if isinstance(error, (FormatError, TooLarge)):
            raise
        raise FormatError(f"this is no name of a file: {error}", path=repr(str(path))) from None


def _encoding(path: Path, data: bytes) -> str:
    """The encoding of an XML file: by its byte order mark, by its declaration, or UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    found = _ENCODING.match(data[:500].removeprefix(b"\xef\xbb\xbf"))
    name = found[1].decode("ascii") if found else "utf-8"
    if not _ALLOWED.fullmatch(name):
        raise FormatError(f"the encoding {name!r} is not known; UTF-8 is", path=path, line=1)
    return "utf-8" if re.fullmatch("utf-?8", name, re.IGNORECASE) else name
