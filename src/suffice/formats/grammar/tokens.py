"""Words, quoted strings and numbers of the text formats, with the lines they stand on.

A text is cut once, by one regular expression, into a list of words; a reader walks over the list by position. Lines are
found only when an error is told: the position of a word is looked up by cutting the text again up to that word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array as Array
from suffice.errors import FormatError, nearest, note

_CLOSED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\nrt])')
_PLAIN_NUMBERS = re.compile(r"[-+0-9.eE ]*+")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]{1,9}")
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


class Grammar(NamedTuple):
    """The expression that cuts a text, and the marks of punctuation that it knows."""

    pattern: re.Pattern[str]
    marks: str


def grammar(marks: str, *, special: str = "", multiline_strings: bool = False) -> Grammar:
    """The expression that cuts a text into words, strings and marks of punctuation.

    Blanks and single commas between words only separate. A comma where nothing is listed, as in `(5,)` or `(, a)` or `1,,2`,
    stays a token and is refused by whoever meets it. A string that is not closed ends with its line, or with the text. No
    part of the expression can match the same text in two ways, so that cutting takes linear time on any text.
    """
    inside = r'[^"\\]|\\.' if multiline_strings else r'[^"\\\n]|\\[^\n]'
    escaped = re.escape(marks)
    openers = re.escape("".join(c for c in "({[|;" if c in marks))
    closers = re.escape("".join(c for c in ";)}]|" if c in marks))
    words = rf'{special}[^\s,"{escaped}]++|[{openers}]\s*+,|[{escaped}]|"(?:{inside})*+"?+|,(?=\s*+(?:[,{closers}]|\Z))'
    return Grammar(re.compile(words, re.DOTALL), marks)


def without_comments(text: str, *, line: str = "//", block: bool = True, multiline_strings: bool = False) -> str:
    """The text with its comments blanked, strings left alone and every line where it was."""
    if line not in text and not (block and "/*" in text):
        return text
    inside = r'[^"\\]|\\.' if multiline_strings else r'[^"\\\n]|\\[^\n]'
    blocks = r"|/\*.*?(?:\*/|\Z)" if block else ""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        if found[0] == '"':
            return found
        if block and found.startswith("/*") and (len(found) < 4 or not found.endswith("*/")):
            raise FormatError("a comment is opened here and never closed", line=text.count("\n", 0, match.start()) + 1)
        return " " + "\n" * found.count("\n")

    return re.sub(rf'"(?:{inside})*+"?+|{re.escape(line)}[^\n]*+{blocks}', blank, text, flags=re.DOTALL)


class Tokens:
    """The words of a text and the place of the reader in them. After the last word stands an empty one."""

    def __init__(self, text: str, grammar: Grammar) -> None:
        self.text, self.grammar = text, grammar
        self.words: list[str] = grammar.pattern.findall(text)
        self.words.append("")
        self.at = 0

    def line(self, at: int) -> int:
        """The line of the word at a position."""
        end = len(self.text.rstrip())
        for k, match in enumerate(self.grammar.pattern.finditer(self.text)):
            if k == at:
                end = match.start()
                break
        return self.text.count("\n", 0, end) + 1

    def error(self, message: str, at: int | None = None) -> FormatError:
        return FormatError(message, line=self.line(self.at if at is None else at))

    def unexpected_token(self, wanted: str, at: int | None = None) -> FormatError:
        found = self.words[min(self.at if at is None else at, len(self.words) - 1)]
        return self.error(
            f"expected {wanted}, found {show(found)}" if found else f"the file ends where {wanted} was expected", at
        )

    @property
    def word(self) -> str:
        return self.words[self.at]

    def accept(self, word: str) -> bool:
        """Whether the next word is this one, which is then passed."""
        if self.words[self.at] != word:
            return False
        self.at += 1
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                raise self.unexpected_token(f"{word!r}")

    def name(self, what: str) -> str:
        """The next word, a name: without its quotes if it has any."""
        name = self.unquote(self.at, what)
        self.at += 1
        return name

    def names(self, words: list[str], at: int, what: str) -> list[str]:
        """Names that stand side by side from a position on."""
        if {word[0] for word in words}.isdisjoint(self.grammar.marks + ',"p'):
            return words
        return [self.unquote(at + k, what) for k in range(len(words))]

    def unquote(self, at: int, what: str) -> str:
        word = self.words[at]
        if not word or word[0] == "," or word[0] in self.grammar.marks or word.startswith(("property ", "property\t")):
            raise self.unexpected_token(what, at)
        if word[0] != '"':
            return word
        if not _CLOSED.fullmatch(word):
            raise self.error("a quote is opened here and never closed", at)
        return _ESCAPED.sub(lambda m: _ESCAPES[m[1]], word[1:-1])

    def until(self, mark: str) -> list[str]:
        """The words before the next mark, which is passed too."""
        try:
            end = self.words.index(mark, self.at)
        except ValueError:
            raise self.error(f"{mark!r} is missing between here and the end of the file") from None
        found = self.words[self.at : end]
        self.at = end + 1
        return found

    def numbers(self, words: Sequence[str], at: int) -> Array:
        """The numbers that these words are; the first that is none is looked for from `at` on, for its line."""
        try:
            return numbers(words)
        except NotANumberError as error:
            place = self.words.index(error.word, at)
            is_mark = error.word[0] in self.grammar.marks
            raise (self.unexpected_token("a number", place) if is_mark else self.error(str(error), place)) from None

    def count(self, what: str) -> int:
        """The next word, a whole number."""
        if not _WHOLE.fullmatch(self.word):
            raise self.unexpected_token(what)
        self.at += 1
        return int(self.words[self.at - 1])


class NotANumberError(Exception):
    """A word that stands where a number should."""

    def __init__(self, word: str) -> None:
        self.word = word
        bare = word.lower().lstrip("+-")
        super().__init__(
            f"{word} is not a probability" if bare in ("nan", "inf", "infinity") else f"{show(word)} is not a number"
        )


def numbers(words: Sequence[str]) -> Array:
    """Words as numbers, in bulk. Only plain decimal notation: Python's own `1_0` or `١` are no numbers here."""
    if _PLAIN_NUMBERS.fullmatch(" ".join(words)):
        try:
            return np.array(list(map(float, words)), dtype=np.float64)
        except ValueError:
            pass
    raise NotANumberError(next(word for word in words if not _NUMBER.fullmatch(word)))


def quote(text: str) -> str:
    """A name as a quoted string."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + plain.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Spelling:
    """How a format writes names: as they are if they are plain words and not words of its own, otherwise quoted."""

    def __init__(self, plain: re.Pattern[str], words: Collection[str]) -> None:
        self._plain, self._words = plain, frozenset(words)

    def __call__(self, name: str) -> str:
        return name if self._plain.fullmatch(name) and name not in self._words else quote(name)

    def note(self, names: Iterable[str], kind: str) -> None:
        """Tell the user of a name that is no identifier."""
        if odd := next((name for name in names if self(name) != name), None):
            note(f"{show(odd)} is no identifier: it is quoted, which other readers of {kind} may refuse")


def show(text: str, limit: int = 60) -> str:
    """A name for a sentence, cut if it is long."""
    return repr(text if len(text) <= limit else text[:limit] + "…")


def hint(name: str, known: Sequence[str]) -> str:
    """The nearest known name, unless looking for it would take long."""
    return nearest(name, known) if len(name) <= 60 and len(known) <= 2000 else ""
