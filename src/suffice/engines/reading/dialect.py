"""How text files are written: what separates columns, what the decimal mark is, and how characters are encoded.

The separator is recognised from the first lines where nobody says it; the decimal mark is a point unless another is said.
"""

from __future__ import annotations

import codecs
import io
from dataclasses import dataclass
from typing import BinaryIO

from suffice.errors import DataError


@dataclass(frozen=True)
class Dialect:
    """How a text file is written; without a separator it is recognised.

    >>> Dialect(separator=";", decimal=",")
    Dialect(separator=';', decimal=',', encoding='utf-8')
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        mark = self.separator
        if mark is not None and (not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0'):
            raise DataError(f"a separator is one character, such as ';' or a tab, not {mark!r}")
        if self.decimal not in (".", ","):
            raise DataError(f"the decimal mark is '.' or ',', not {self.decimal!r}")
        if mark == self.decimal:
            raise DataError(f"{mark!r} cannot separate columns and be the decimal mark: give another separator")
        try:
            is_text = isinstance(self.encoding, str) and codecs.lookup(self.encoding)._is_text_encoding
        except (LookupError, ValueError):
            is_text = False
        if not is_text:
            raise DataError(f"the encoding {self.encoding!r} is not known; known are utf-8, utf-16, latin-1, cp1252 and others")


AS_USUAL = Dialect()
"""How text files are written of which nothing was said."""


class TextPath(str):
    """The path of text files, or a pattern, with what was said of how they are written: for whoever passes paths on.

    >>> TextPath("rows.csv", Dialect(";")).dialect.separator
    ';'
    """

    dialect: Dialect

    def __new__(cls, path: str, dialect: Dialect) -> TextPath:
        result = super().__new__(cls, path)
        result.dialect = dialect
        return result


class Recoded(io.RawIOBase):
    """The bytes of a file as UTF-8."""

    def __init__(self, raw: BinaryIO, encoding: str, path: object) -> None:
        self._raw, self._encoding, self._path = raw, encoding, path
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def readable(self) -> bool:
        return True

    def read(self, n: int = -1) -> bytes:
        while True:
            data = self._raw.read(n)
            try:
                text = self._decoder.decode(data, not data)
            except UnicodeError as error:
                raise DataError(f"{self._path}: the text is not {self._encoding} ({error})") from None
            if text or not data:
                return text.encode("utf-8", "replace")
