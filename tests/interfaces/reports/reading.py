"""A report as a reader sees it: well-formed elements, their text, tables by their captions, and what the page would load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "input", "br", "link", "img", "hr"}
LOADING = {"src", "srcset", "data", "action", "formaction", "poster", "background", "ping", "manifest"}


@dataclass
class Node:
    """An element."""

    tag: str
    attributes: dict[str, str]
    parts: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    def all(self, tag: str) -> Iterator[Node]:
        """All elements of a kind inside, in their order."""
        for part in self.parts:
            if isinstance(part, Node):
                if part.tag == tag:
                    yield part
                yield from part.all(tag)

    def cells(self) -> list[list[str]]:
        """The rows of a table."""
        return [[c.text for c in row.parts if isinstance(c, Node)] for row in self.all("tr")]


class Reader(HTMLParser):
    """What parses a report, and fails where an element is not closed as it was opened."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("document", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"<{tag}> has an attribute twice: {names}"
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].parts.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].parts.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].parts.append(data)


def read(html: str) -> Node:
    """The elements of a report, which is well-formed, loads nothing and has one script."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [reader.root], f"not closed: {[node.tag for node in reader.open[1:]]}"
    check(reader.root)
    return reader.root


def elements(node: Node) -> Iterator[Node]:
    for part in node.parts:
        if isinstance(part, Node):
            yield part
            yield from elements(part)


def check(root: Node) -> None:
    """Nothing is loaded, nothing runs but the script; links lead to what is there, headings are in order, tables have heads."""
    every = list(elements(root))
    places = [node.attributes["id"] for node in every if "id" in node.attributes]
    assert len(places) == len(set(places)), "an id stands twice"
    for node in every:
        assert not LOADING & node.attributes.keys(), f"<{node.tag}> loads something"
        assert not [name for name in node.attributes if name.startswith("on") or name == "style"], node.tag
        if "href" in node.attributes:
            assert node.attributes["href"].startswith("#"), node.attributes
            assert node.attributes["href"][1:] in places, node.attributes
        assert node.tag not in {"link", "img", "iframe", "object", "embed", "base", "form", "image", "use"}
        if node.tag == "th":
            assert node.attributes.get("scope") in ("row", "col")
        if node.tag == "svg":
            assert next(node.all("title")).text
    assert len([node for node in every if node.tag == "script"]) == 1
    assert len([node for node in every if node.tag == "style"]) == 1
    levels = [int(node.tag[1]) for node in every if node.tag in {"h1", "h2", "h3", "h4"}]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels)), levels


def section(root: Node, id: str) -> Node:
    """A part of a report, by its place."""
    return next(s for s in root.all("section") if s.attributes["aria-labelledby"] == id)


def sections(root: Node) -> list[str]:
    return [s.attributes["aria-labelledby"] for s in root.all("section")]


def article(root: Node, name: str) -> Node:
    """What is said of a node."""
    return next(a for a in root.all("article") if next(a.all("h3")).text == name)


def facts(node: Node) -> dict[str, str]:
    """Terms and what is said of them."""
    return {next(d.all("dt")).text: next(d.all("dd")).text for d in node.all("div") if next(d.all("dt"), None)}
