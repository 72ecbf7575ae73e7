"""Tiers from a text file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from suffice.errors import FormatError, bytes_in_words
from suffice.graphs.text import shown
from suffice.structure.constraints import Tiers


def read_tiers(path: str | Path, *, within: bool = True) -> Tiers:
    """Tiers from a text file: a line is a tier, commas separate its names; blank lines and lines that begin with # are skipped.

    A name that holds a comma or a quote, or begins with #, stands in double quotes, with quotes inside doubled, as in CSV.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "tiers.txt"
    >>> _ = place.write_text('# what comes first\\nage, sex\\n\\n"smoke, ever"\\n')
    >>> read_tiers(place)
    Tiers(['age', 'sex'], ['smoke, ever'])
    """
    seen: dict[str, int] = {}
    tiers = []
    for line, text in enumerate(_lines(path), 1):
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        tier = list(_fields(text, path, line))
        for name in tier:
            if name in seen:
                where = f"in line {seen[name]} too" if seen[name] < line else "twice in this line"
                raise FormatError(f"{shown(name)} is {where}, but a name is in one tier only", path=path, line=line)
            seen[name] = line
        tiers.append(tier)
    if not tiers:
        raise FormatError("there are no tiers in this file: each line should hold the names of one, as in 'age, sex'", path=path)
    return Tiers(*tiers, within=within)


MAX_BYTES = 2**26
"""No larger file is read as tiers."""

_FIELD = re.compile(r'\s*+(?:"((?:[^"]|"")*+)"|([^",]*+))\s*+(,|$)')


def _fields(text: str, path: object, line: int) -> Iterator[str]:
    at, more = 0, True
    while more:
        match = _FIELD.match(text, at)
        if not match:
            hint = "a name that holds a quote stands in quotes, with the quotes inside doubled"
            raise FormatError(f"a quote is out of place in {shown(text[at:].strip())}: {hint}", path=path, line=line)
        name = match[2].strip() if match[1] is None else match[1].replace('""', '"')
        if not name.strip():
            raise FormatError("a name is missing beside a comma, or blank", path=path, line=line)
        yield name
        at, more = match.end(), match[3] == ","


def _lines(path: str | Path) -> list[str]:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, TypeError, ValueError) as error:
        raise FormatError(f"the file cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from None
    if len(data) > MAX_BYTES:
        raise FormatError(f"the file is larger than {bytes_in_words(MAX_BYTES)}, too large for tiers", path=path)
    try:
        return re.split(r"\r\n|\r|\n", data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"byte {error.start + 1} of the file is not UTF-8", path=path, line=line) from None
