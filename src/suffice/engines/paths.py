"""Paths: which files are meant, and what reads them."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from suffice.engines.delimited import SUFFIXES, Delimited
from suffice.engines.parquet import Parquet
from suffice.engines.sources import Source
from suffice.errors import DataError, nearest

PARQUET = (".parquet", ".pq")


def from_paths(paths: Sequence[str | os.PathLike[str]]) -> Source:
    """The source of the rows of files."""
    files = [f for p in paths for f in expanded(p)]
    suffixes = {suffix(f) for f in files}
    if suffixes <= set(PARQUET):
        return Parquet(files)
    if suffixes <= set(SUFFIXES):
        return Delimited(files, [SUFFIXES[suffix(f)] for f in files])
    raise DataError("the files are of different kinds: " + ", ".join(sorted(suffixes)))


def expanded(path: str | os.PathLike[str]) -> list[Path]:
    """The files that a path or pattern means, in the order of their names."""
    text = os.path.expanduser(os.fspath(path))
    if os.path.isdir(text):
        raise DataError(f"{text}: this is a directory; give its files, such as {os.path.join(text, '*.parquet')}")
    if os.path.exists(text):
        return [_known(Path(text))]
    if glob.has_magic(text):
        found = sorted(Path(f) for f in glob.glob(text, recursive=True) if os.path.isfile(f))
        if not found:
            raise DataError(f"{text}: no file fits this pattern")
        return [_known(f) for f in found]
    parent = Path(text).parent
    if not parent.is_dir():
        raise DataError(f"{text}: there is no directory {str(parent)!r}")
    raise DataError(f"{text}: there is no such file{nearest(Path(text).name, os.listdir(parent))}")


def suffix(path: Path) -> str:
    """The suffix that says what a file holds, in small letters, without that of its compression.

    >>> suffix(Path("visits.CSV.gz"))
    '.csv'
    """
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


def _known(path: Path) -> Path:
    if suffix(path) not in (*SUFFIXES, *PARQUET) or (path.suffix.lower() == ".gz" and suffix(path) in PARQUET):
        raise DataError(f"{path}: rows are read from .csv, .tsv (also .gz) and .parquet files")
    return path
