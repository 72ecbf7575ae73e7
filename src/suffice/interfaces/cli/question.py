"""Questions as text: `P(a, b | c=x, d=y)`, with or without the `P( )`.

Targets stand before the bar, evidence after it. A value is a state, a number, or one likelihood per state: `c=[0.2, 0.8]`.
Names and states with blanks or marks stand in quotes, double or single, with `\\"`, `\\\\` and `\\n` for a quote, a backslash and
a line break. Reading takes time linear in the length of the text, and knows no model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, TypeAlias

from suffice.errors import ModelError

Value: TypeAlias = str | tuple[float, ...]
"""What stands after `=`: a state or a number as text, or likelihoods."""

_OPENING = re.compile(r"\s*[Pp]\s*\(")
_TOKEN = re.compile(
    r"""(?P<mark>[,|=()\[\]])"""
    r"""|(?P<quoted>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')"""
    r"""|(?P<open>["'])"""
    r"""|(?P<word>(?:[<>]=)?[^\s,|=()\[\]"]++)""",
    re.DOTALL,
)
_DO = re.compile(r"\bdo\s*$")
_END = "end"
QUESTION = "the question"


@dataclass(frozen=True)
class WrittenQuestion:
    """What is asked: the targets, the states that some of them are asked for, and what is given."""

    targets: tuple[str, ...]
    states: dict[str, str]
    given: dict[str, Value]


def read_question(text: str, *, evidence_alone: bool = False) -> WrittenQuestion:
    """The question that a text asks; where evidence alone is enough, names with values and no bar are that, and not targets."""
    return _Reader(text, QUESTION).question(evidence_alone=evidence_alone)


def read_settings(text: str, what: str) -> dict[str, Value]:
    """Names with values, of an option: `x=yes, y=1.5`."""
    return _Reader(text, what).settings()


class _Token(NamedTuple):
    kind: str  # "," "|" "=" "(" ")" "[" "]", "text", or the end
    text: str
    at: int


class _Item(NamedTuple):
    name: str
    value: Value | None
    at: _Token


def _tokens(text: str, start: int) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text, start):
        found = match.group()
        if match.lastgroup == "quoted":
            found = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], found[1:-1], flags=re.DOTALL)
        kind = {"mark": found, "open": "open"}.get(match.lastgroup or "", "text")
        yield _Token(kind, found, match.start())
    yield _Token(_END, "", len(text))


class _Reader:
    """Reads one text from left to right; `what` is what an error calls it."""

    def __init__(self, text: str, what: str) -> None:
        self.text, self.what = text, what
        opening = _OPENING.match(text) if what == QUESTION else None
        self.parenthesis = opening is not None
        self.tokens = _tokens(text, opening.end() if opening else 0)
        self.next = next(self.tokens)

    def question(self, *, evidence_alone: bool) -> WrittenQuestion:
        before = self.items()
        bar = self.accept("|") is not None
        given = self.items() if bar else []
        if self.parenthesis:
            self.expect(")", "a closing ) is missing" if self.next.kind == _END else self.a_mark(bar))
            self.expect(_END, "the question ended with )")
        self.expect(_END, self.a_mark(bar))
        if evidence_alone and not bar and all(item.value is not None for item in before):
            before, given = [], before
        asked: dict[str, str] = {}
        for item in before:
            if isinstance(item.value, tuple):
                self.refuse(item.at, f"{item.name!r} takes one value here; likelihoods are evidence, after the bar")
            if item.value is not None:
                asked[item.name] = item.value
        return WrittenQuestion(tuple(i.name for i in before), asked, self.values(given))

    def settings(self) -> dict[str, Value]:
        items = self.items()
        self.expect(_END, self.a_mark(bar=True))
        if not items:
            self.refuse(self.next, "NAME=VALUE is expected")
        return self.values(items)

    def items(self) -> list[_Item]:
        """Names, some with values, between commas; perhaps none."""
        items: dict[str, _Item] = {}
        while self.next.kind not in ("|", ")", _END) or items:
            at = self.expect("text", "a name is expected")
            if not at.text.strip():
                self.refuse(at, "a name cannot be blank")
            item = _Item(at.text, self.value(at.text) if self.accept("=") else None, at)
            if item.name in items:
                self.refuse(at, f"{item.name!r} stands there twice")
            items[item.name] = item
            if not self.accept(","):
                break
        return list(items.values())

    def value(self, name: str) -> Value:
        """A state or a number, or likelihoods between brackets."""
        if not self.accept("["):
            return self.expect("text", f"a state or a number is expected for {name!r}").text
        numbers: list[float] = []
        while not numbers or self.accept(","):
            wanted = "between [ and ] stands one number for each state; a state with marks stands in quotes"
            token = self.expect("text", wanted)
            try:
                numbers.append(float(token.text))
            except ValueError:
                self.refuse(token, wanted)
        self.expect("]", "a comma or ] is expected after a likelihood; a state with marks stands in quotes")
        return tuple(numbers)

    def values(self, items: list[_Item]) -> dict[str, Value]:
        """What items are set to, each of which must be."""
        found: dict[str, Value] = {}
        for item in items:
            if item.value is None:
                self.refuse(item.at, f"{item.name!r} has no value; write NAME=VALUE")
            found[item.name] = item.value
        return found

    def a_mark(self, bar: bool) -> str:
        if self.next.kind == "text":
            return "a comma is missing, or quotes around a name or a state with blanks"
        if self.next.kind == "(" and _DO.search(self.text, 0, self.next.at):
            return "what is done stands beside the question: --do NAME=VALUE"
        return "a comma is expected" if bar else "a comma or a bar is expected"

    def accept(self, kind: str) -> _Token | None:
        """The next token if it is of this kind, and on to the one after it."""
        token = self.next
        if token.kind == "open":
            self.refuse(token, "a quote is opened and not closed")
        if token.kind != kind:
            return None
        self.next = next(self.tokens, token)
        return token

    def expect(self, kind: str, otherwise: str) -> _Token:
        return self.accept(kind) or self.refuse(self.next, otherwise)

    def refuse(self, token: _Token, why: str) -> NoReturn:
        before = self.text[: token.at].strip()
        after = f", after {before if len(before) <= 30 else '…' + before[-30:]!r}" if before else ""
        raise ModelError(f"{self.what} is not understood at column {token.at + 1}{after}: {why}")
