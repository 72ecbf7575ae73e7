"""What graphs are made of: text (`a, b -> c; c -> d`, bnlearn's `[a][b][c|a:b][d|c]`, Graphviz's `digraph { a -> b }`, dagitty's
`dag { a -> b }`, or lines `a -- b; b -- c`), mappings, pairs and networkx graphs, read into checked names and pairs, and written
as text.

Names are any text without the marks `;` `,` `->` `<-` (of undirected graphs `--`) and line breaks; in double quotes they may hold
those too, with `\\"`, `\\\\` and `\\n` for a quote, a backslash and a line break. Everything here takes time linear in the length
of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any, TypeAlias

from suffice.errors import GraphError, nearest

Edge: TypeAlias = tuple[str, str]

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_MARK = re.compile(r'"(?:[^"\\]|\\.)*+"|[<>-]+|[;\n][;\s]*+|[→←,"]', re.DOTALL)
_ARROWS = {"->": "->", "→": "->", "<-": "<-", "←": "<-"}
_LINES = {"--": "--"}
_PLAIN = re.compile(r'(?!#)[^\s;,"<>→←\[\]\\{}]+')
_ODD = re.compile(r"[{}]|[=~]>")
_BRACKET = re.compile(r"\s*\[([^\[\]|]*+)(?:\|([^\[\]]*+))?\]\s*+")

_DOT_TOKEN = re.compile(
    r'\s+|/\*.*?\*/|//[^\n]*|^\#[^\n]*|(?P<quoted>"(?:[^"\\]|\\.)*+")|(?P<edge><->|->|<-|--)|(?P<mark>[{}\[\];,=:])'
    r"|(?P<name>[^\s{}\[\];,=:\"<>-](?:[^\s{}\[\];,=:\"<>-]|-(?![->]))*+|-?[0-9.]+)",
    re.DOTALL | re.MULTILINE,
)
_DOT_HEAD = re.compile(r"\s*(?:strict\s+)?(digraph|graph|dag|pdag|mag|pag)\b[^{;>]*\{", re.IGNORECASE)

Token: TypeAlias = tuple[str, str]
"""The kind of a token of DOT, and the token."""
DEEPEST = 100
"""Braces within braces that are read."""

MAX_PRODUCT = 200_000
"""Edges that comma lists on both sides of arrows may spell in one text: 1,000 names -> 1,000 names is a slip of the pen."""


def has_lines(text: str) -> bool:
    """Whether a text spells an undirected graph: `--` between blanks, which no text of arrows has."""
    return any(m.group() == "--" and _looks_like_arrow(text, m.start(), "--") for m in _MARK.finditer(text))


def parse_text(text: str, marks: Mapping[str, str] = _ARROWS) -> tuple[list[str], list[Edge]]:
    """The names and the edges of a text of arrows, or of lines, in the order of their first mention."""
    if marks is _ARROWS and (head := _DOT_HEAD.match(text)):
        return _parse_dot(text, head)
    text = re.sub(r"(?m)^[ \t]*#.*$", "", text)
    names: dict[str, None] = {}
    edges: list[Edge] = []
    left, group, arrow = [], [], ""  # type: list[str], list[str], str
    n_products = 0
    for name, mark, found, at in _tokens(text, marks):
        if name:
            names[name] = None
            group.append(name)
        elif group or arrow or mark != ";":
            raise _syntax_error(text, at, f"a name is missing {'at the end' if at >= len(text) else 'before ' + show(found)}")
        if mark == ",":
            continue
        if len(left) > 1 and len(group) > 1:
            n_products += len(left) * len(group)
            if n_products > MAX_PRODUCT:
                raise _syntax_error(text, at, f"the comma lists spell more than {MAX_PRODUCT:,} edges")
        edges += product(group, left) if arrow == "<-" else product(left, group)
        left, arrow, group = (group, mark, []) if mark != ";" else ([], "", [])
    return list(names), edges


def _tokens(text: str, marks: Mapping[str, str]) -> Iterator[tuple[str, str, str, int]]:
    """The name before each mark, if there is one; the mark: one of `marks`, `,` or `;`, which comes last; its text and place."""
    start = 0
    for match in chain(_MARK.finditer(text), [None]):
        found, at = (";", len(text)) if match is None else (match.group(), match.start())
        if found == '"':
            raise _syntax_error(text, at, "a quote that does not end")
        mark = marks.get(found) or (";" if found[0] in ";\n" else found)
        known = mark in (",", ";") or found in marks
        if found[0] == '"' or (not known and not _looks_like_arrow(text, at, found)):
            continue
        if not known:
            raise _syntax_error(text, at, f"{show(found)} is {_what_else(found, marks)}")
        name = text[start:at].strip()
        if '"' in name:
            if not _QUOTED.fullmatch(name):
                raise _syntax_error(text, start, "a quoted name must stand alone between the marks")
            name = _unescape(name)
            if not name.strip():
                raise _syntax_error(text, start, "a blank name")
        elif odd := _ODD.search(name):
            raise _syntax_error(text, start, f"{show(odd[0])} is no part of a name: write -> or <-, or quote the name")
        yield name, mark, found, at
        start = at + len(found)


def _unescape(quoted: str) -> str:
    """What stands in quotes."""
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], quoted[1:-1], flags=re.DOTALL)


def _what_else(found: str, marks: Mapping[str, str]) -> str:
    if marks is _LINES:
        return (
            "an arrow: an undirected graph has lines, a -- b" if found in _ARROWS else "not a line: write --, or quote the name"
        )
    line = " (it is the line of a Graph)" if found == "--" else ""
    return f"not an arrow{line}: write -> or <-, or quote the name that it is part of"


def _looks_like_arrow(text: str, at: int, found: str) -> bool:
    """`<->`, `-->`, and `-` or `--` between blanks are mistakes; any other run of `<`, `>`, `-` is part of a name, as in `x-ray`,
    or of a lag, as in `x[ - 1]`."""
    if "->" in found or "<-" in found or found in _ARROWS:
        return True
    before, end = text[max(at - 9, 0) : at], at + len(found)
    around = before[-1:] + text[end : end + 1]
    return set(found) == {"-"} and len(around) == 2 and not around.strip() and not before.rstrip().endswith("[")


def parse_modelstring(text: str) -> tuple[list[str], list[Edge]]:
    """The names and the edges of bnlearn's model string; a parent that has no brackets of its own is refused."""
    names: dict[str, None] = {}
    edges: list[Edge] = []
    at = 0
    while at < len(text):
        match = _BRACKET.match(text, at)
        if not match:
            raise _syntax_error(text, at, "expected [node] or [node|parent:parent]")
        name, parents = match[1].strip(), [] if match[2] is None else [p.strip() for p in match[2].split(":")]
        if not name or not all(parents):
            raise _syntax_error(text, at, "a name is missing")
        if name in names:
            raise GraphError(f"the model string has the node {show(name)} twice")
        names[name] = None
        edges += [(p, name) for p in parents]
        at = match.end()
    for parent, _ in edges:
        if parent not in names:
            raise unknown_node(parent, names)
    return list(names), edges


def read_directed(x: Any) -> tuple[list[str], list[Edge]]:
    """The names that something mentions and its pairs (parent, child); the pairs of one child in the order of its parents."""
    if isinstance(x, str):
        return parse_modelstring(x.strip()) if x.lstrip().startswith("[") else parse_text(x)
    if isinstance(x, Mapping):
        names, edges = [checked_name(child) for child in x], []
        for child, parents in x.items():
            if not isinstance(parents, Iterable):
                raise GraphError(f"the parents of {show(child)} must be a list of names, not {show(parents)}")
            edges += [(checked_name(p), child) for p in ([parents] if isinstance(parents, str) else _in_order(parents))]
        return names, edges
    return _read_edges(x, "directed", "a Dag needs a DiGraph")


def read_undirected(x: Any) -> tuple[list[str], list[Edge]]:
    """The names that something mentions and its pairs."""
    if isinstance(x, str):
        if x.lstrip().startswith(("graph", "strict graph")) and "{" in x:
            raise GraphError(
                "this is Graphviz's language, which is only written; an undirected graph is read as 'a -- b; b -- c'"
            )
        return parse_text(x, _LINES)
    return _read_edges(x, "undirected", "a Graph needs an undirected one: Dag(g).moral() or .skeleton()")


def is_networkx(x: object) -> bool:
    return all(hasattr(x, attribute) for attribute in ("nodes", "edges", "is_directed"))


def _read_edges(x: Any, kind: str, needed: str) -> tuple[list[str], list[Edge]]:
    """The names and the pairs of a networkx graph of the kind that is needed, or pairs alone."""
    if not is_networkx(x):
        return [], read_pairs(x)
    found = "directed" if x.is_directed() else "undirected"
    if found != kind:
        raise GraphError(f"the networkx graph is {found}; {needed}")
    return [checked_name(name) for name in x.nodes], read_pairs(x.edges())


def read_pairs(pairs: Iterable[Any]) -> list[Edge]:
    """Pairs of names, checked one by one."""
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise GraphError(f"expected pairs of names, not {show(pairs)}")
    edges = []
    for edge in _in_order(pairs):
        try:
            a, b = edge
        except (TypeError, ValueError):
            a = b = None
        if a is None or isinstance(edge, (str, set, frozenset)):
            raise GraphError(f"an edge is a pair of names, not {show(edge)}")
        edges.append((checked_name(a), checked_name(b)))
    return edges


def _in_order(items: Iterable[Any]) -> Iterable[Any]:
    """A set has no order of its own, or worse, another one in each process: it is sorted."""
    return sorted(items, key=repr) if isinstance(items, (set, frozenset)) else items


def checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise GraphError(f"the name of a node must be text, not {show(name)}")
    if not name.strip():
        raise GraphError(f"the name of a node must not be blank, as {show(name)} is")
    return str(name)


def all_nodes(mentioned: Iterable[str], pairs: Sequence[Edge], nodes: Iterable[str] | None = None) -> tuple[str, ...]:
    """The sorted names of all nodes. What is refused: when `nodes` are given, a name outside them; an edge from a node to itself,
    and one that is given twice.
    """
    found = {*mentioned, *(x for e in pairs for x in e)}
    if nodes is not None:
        known = {checked_name(x) for x in ([nodes] if isinstance(nodes, str) else nodes)}
        if not found <= known:
            raise unknown_node(min(found - known), known)
        found = known
    seen = set(pairs)
    for a, b in pairs:
        if a == b:
            raise GraphError(f"the node {show(a)} has an edge to itself")
        if len(seen) < len(pairs):
            if (a, b) not in seen:
                raise GraphError(f"the edge from {show(a)} to {show(b)} is given twice")
            seen.remove((a, b))
    return tuple(sorted(found))


def unknown_node(name: object, known: Iterable[str]) -> GraphError:
    """The refusal of a name that is no node of a graph."""
    candidates = [k for k in known if len(k) <= 100]
    # difflib takes quadratic time in the length of names and some 10 µs a name
    hint = nearest(name, sorted(candidates)) if isinstance(name, str) and len(name) <= 100 and len(candidates) <= 10_000 else ""
    return GraphError(f"the graph has no node {show(name)}{hint}")


def statements(
    order: Iterable[str], parents: Mapping[str, Sequence[str]], write: Callable[[str], str] | None = None
) -> Iterator[str]:
    """The statements that spell a graph, one per child in the order given, with the parents in their own order.

    `write` puts a name into text; `spelling` does, unless another is given.
    """
    write = write or spelling
    has_children = {p for ps in parents.values() for p in ps}
    for child in order:
        if parents[child]:
            yield f"{', '.join(map(write, parents[child]))} -> {write(child)}"
        elif child not in has_children:
            yield write(child)


def spelling(name: str) -> str:
    """A name as it stands in a text of arrows: in quotes where it needs them."""
    return name if _PLAIN.fullmatch(name) and name.strip("-") else quote_name(name)


def written_in_lines(name: str) -> str:
    """The same in a text of lines, in which `--` ends a name."""
    return quote_name(name) if "--" in name or name.startswith("-") or name.endswith("-") else spelling(name)


def quote_name(name: str) -> str:
    """A name in double quotes, for texts of arrows and for DOT."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def show(name: object) -> str:
    """A name for a sentence, cut when it is very long."""
    text = repr(name if not isinstance(name, str) else name[:100])
    return text if len(text) <= 62 else f"{text[:58]}...{text[-1]}"


def _syntax_error(text: str, at: int, what: str) -> GraphError:
    near = text[max(at - 12, 0) : at + 20]
    return GraphError(f"the text is not a graph: {what} (character {at + 1}, near {near!r})")


def _parse_dot(text: str, head: re.Match[str]) -> tuple[list[str], list[Edge]]:
    """The names and the arrows of Graphviz's language, or dagitty's; the rest, such as colours and places, is passed over."""
    if head[1].lower() not in ("digraph", "dag"):
        raise GraphError(
            f"a {head[1]} {{ ... }} has edges without arrows, and a Dag has none: write digraph {{ ... }} or dag {{ ... }}"
        )
    reader = _DotReader(_dot_tokens(text, head.end()))
    reader.statements()
    if reader.at < len(reader.tokens):
        raise GraphError(f"the text is not a graph: {reader.tokens[reader.at][1]!r} stands after its last brace")
    return list(reader.names), list(reader.edges)


def _dot_tokens(text: str, start: int) -> list[Token]:
    found: list[Token] = []
    while start < len(text):
        match = _DOT_TOKEN.match(text, start)
        if match is None:
            raise GraphError(
                f"the text is not a graph: {text[start]!r} cannot stand here (near {text[max(start - 12, 0) : start + 20]!r})"
            )
        if match.lastgroup is not None:
            found.append((match.lastgroup, match.group()))
        start = match.end()
    return found


class _DotReader:
    """The statements between the braces, one token after the other."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0
        self.names: dict[str, None] = {}
        self.edges: dict[Edge, None] = {}

    def _next(self) -> Token:
        if self.at >= len(self.tokens):
            raise GraphError("the text is not a graph: a closing brace } is missing")
        self.at += 1
        return self.tokens[self.at - 1]

    def _peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def statements(self) -> list[str]:
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
            while self._next()[1] != "]":
                pass
        return every

    def _group(self) -> list[str]:
        """One node, or those of a subgraph in braces; nothing of what is not about nodes."""
        kind, text = self._next()
        if text == "{" or (kind == "name" and text.lower() == "subgraph"):
            while text != "{":
                text = self._next()[1]
            return self.statements()
        if kind not in ("name", "quoted"):
            raise GraphError(f"the text is not a graph: a name is missing before {text!r}")
        if self._peek() == "=":
            self.at += 2  # a setting of the picture
            return []
        if kind == "name" and text.lower() in ("node", "edge", "graph") and self._peek() == "[":
            return []
        while self._peek() == ":":
            self.at += 2  # the port of a box
        name = _unescape(text) if kind == "quoted" else text
        self.names[name] = None
        return [name]
