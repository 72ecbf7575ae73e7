"""Graphs in Graphviz's language, `digraph { a -> b }`, and dagitty's, `dag { a -> b }`: nodes and arrows are read, the rest, such
as colours and places, is passed over. What is no arrow (`--`, `<->`) is refused."""

from __future__ import annotations

import re
from itertools import product

from suffice.errors import GraphError

_TOKEN = re.compile(
    r'\s+|/\*.*?\*/|//[^\n]*|^\#[^\n]*|(?P<quoted>"(?:[^"\\]|\\.)*+")|(?P<edge><->|->|<-|--)|(?P<mark>[{}\[\];,=:])'
    r"|(?P<name>[^\s{}\[\];,=:\"<>-](?:[^\s{}\[\];,=:\"<>-]|-(?![->]))*+|-?[0-9.]+)",
    re.DOTALL | re.MULTILINE,
)
_HEAD = re.compile(r"\s*(?:strict\s+)?(digraph|graph|dag|pdag|mag|pag)\b[^{;>]*\{", re.IGNORECASE)

Edge = tuple[str, str]
Token = tuple[str, str]


def is_dot(text: str) -> bool:
    """Whether a text is in one of these languages."""
    return _HEAD.match(text) is not None


def parse_dot(text: str) -> tuple[list[str], list[Edge]]:
    """The names and the arrows, in the order of their first mention."""
    head = _HEAD.match(text)
    if head is None:
        raise GraphError("the text is not a graph: it begins neither with digraph { nor with dag {")
    if head[1].lower() not in ("digraph", "dag"):
        raise GraphError(
            f"a {head[1]} {{ ... }} has edges without arrows, and a Dag has none: write digraph {{ ... }} or dag {{ ... }}"
        )
    return _DotReader(_tokens(text, head.end())).read()


def _tokens(text: str, start: int) -> list[Token]:
    found: list[Token] = []
    while start < len(text):
        match = _TOKEN.match(text, start)
        if match is None:
            raise GraphError(
                f"the text is not a graph: {text[start]!r} cannot stand here (near {text[max(start - 12, 0) : start + 20]!r})"
            )
        if match.lastgroup is not None:
            found.append((match.lastgroup, match.group()))
        start = match.end()
    return found


DEEPEST = 100
"""Braces within braces that are read."""


class _DotReader:
    """The statements between the braces, one token after the other."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0
        self.names: dict[str, None] = {}
        self.edges: dict[Edge, None] = {}

    def read(self) -> tuple[list[str], list[Edge]]:
        self._statements()
        if self.at < len(self.tokens):
            raise GraphError(f"the text is not a graph: {self.tokens[self.at][1]!r} stands after its last brace")
        return list(self.names), list(self.edges)

    def _next(self) -> Token:
        if self.at >= len(self.tokens):
            raise GraphError("the text is not a graph: a closing brace } is missing")
        self.at += 1
        return self.tokens[self.at - 1]

    def _peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def _statements(self) -> list[str]:
        """The names up to the closing brace."""
        found: dict[str, None] = {}
        self.depth += 1
        if self.depth > DEEPEST:
            raise GraphError(f"the text is not a graph: there are more than {DEEPEST} braces within each other")
        while self._peek() != "}":
            if self._peek() in (";", ","):
                self.at += 1
                continue
            found.update(dict.fromkeys(self._statement()))
        self.at, self.depth = self.at + 1, self.depth - 1
        return list(found)

    def _statement(self) -> list[str]:
        group = self._group()
        every = list(group)
        while self._peek() in ("->", "<-", "--", "<->"):
            arrow = self._next()[1]
            if arrow in ("--", "<->"):
                raise GraphError(
                    f"the graph has {group[0] if group else ''} {arrow} ..., which is no arrow from a parent to a child"
                )
            other = self._group()
            pairs = product(other, group) if arrow == "<-" else product(group, other)
            self.edges.update(dict.fromkeys(pairs))
            every, group = [*every, *other], other
        while self._peek() == "[":
            self._attributes()
        return every

    def _group(self) -> list[str]:
        """One node, or those of a subgraph in braces; nothing of what is not about nodes."""
        kind, text = self._next()
        if text == "{" or (kind == "name" and text.lower() == "subgraph"):
            while text != "{":
                text = self._next()[1]
            return self._statements()
        if kind not in ("name", "quoted"):
            raise GraphError(f"the text is not a graph: a name is missing before {text!r}")
        if self._peek() == "=":
            self.at += 2  # a setting of the picture
            return []
        if kind == "name" and text.lower() in ("node", "edge", "graph") and self._peek() == "[":
            return []
        while self._peek() == ":":
            self.at += 2  # the port of a box
        name = (
            re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text[1:-1], flags=re.DOTALL) if kind == "quoted" else text
        )
        self.names[name] = None
        return [name]

    def _attributes(self) -> None:
        while self._next()[1] != "]":
            pass
