"""The container of what Suffice keeps in files: a zip of one JSON header and plain numpy arrays. Nothing in it can run."""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from suffice.errors import FormatError
from suffice.output.files import replacing

LONGEST_HEADER = 1000
_HEADER = re.compile(
    rb"\{ *'descr': *'(?P<type>[<>|][fiub](?P<size>[1248]))', *'fortran_order': *False, *"
    rb"'shape': *\((?P<shape>[0-9]{0,18}(?: *, *[0-9]{1,18}){0,7},?)\) *,? *\} *\n?"
)
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What the libraries raise when the bytes of an archive are not what they should be."""


def write_archive(
    path: str | PathLike[str], header: Any, arrays: Mapping[str, Any], *, small: bool = True, lasting: bool = False
) -> None:
    """Write the header and the arrays: `small` compresses them, `lasting` waits until they are on the disk."""
    how = zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED
    with replacing(path, lasting=lasting) as place, zipfile.ZipFile(place, "w", how) as archive:
        archive.writestr("header.json", json.dumps(header, ensure_ascii=False, default=_plain))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getbuffer())


def _plain(number: np.generic) -> Any:
    """A number of numpy as JSON has it."""
    return number.item()


def header_of(archive: zipfile.ZipFile) -> Any:
    """The header. Half a character, which an escape can write, is refused."""
    text = archive.read("header.json").decode()
    header = json.loads(text)
    if "\\u" in text:
        json.dumps(header, ensure_ascii=False).encode()
    return header


def archived_array(archive: zipfile.ZipFile, name: str) -> Any:
    """One array, whose size in its header must be the size of what the archive holds, before any of it is taken.

    Headers are read by our own rule, as numpy's own reader takes them for Python, and warns of some.
    """
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as stream:
        start = stream.read(8)
        width = {b"\x93NUMPY\x01\x00": 2, b"\x93NUMPY\x02\x00": 4}.get(start, 0)
        size = int.from_bytes(stream.read(width), "little")
        header = _HEADER.fullmatch(stream.read(size)) if 0 < size <= LONGEST_HEADER else None
        shape = () if header is None else tuple(int(n) for n in header["shape"].split(b",") if n.strip())
        body = info.file_size - len(start) - width - size
        if header is None or math.prod(shape) * int(header["size"]) != body:
            raise FormatError(f"the array {name!r} is not what its header says", path=archive.filename)
        dtype = np.dtype(header["type"].decode())
        return np.frombuffer(stream.read(), dtype).astype(dtype.newbyteorder("=")).reshape(shape)
