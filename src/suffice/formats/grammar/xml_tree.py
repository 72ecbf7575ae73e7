"""XML as a tree that knows its lines, read safely.

Expat reads it; no entity may be declared, nothing is fetched, depth is limited. A document type without entities is fine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from suffice.errors import FormatError
from suffice.formats.grammar.tokens import Array, NotANumberError, numbers, show

BLANKS = " \t\r\n"
_MAX_DEPTH = 50
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class Element:
    """An element: its name, attributes, children, and the text directly inside it."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    @property
    def content(self) -> str:
        """The text inside, without the blanks around it unless `xml:space` says to preserve them."""
        text = "".join(self.parts)
        return text if self.attributes.get("xml:space") == "preserve" else text.strip(BLANKS)

    def all(self, *tags: str) -> Iterator[Element]:
        return (child for child in self.children if child.tag in tags)

    def one(self, tag: str) -> Element:
        """The only child of this name."""
        found = list(self.all(tag))
        if len(found) != 1:
            raise FormatError(f"<{self.tag}> has {len(found) or 'no'} <{tag}>; it needs one", line=self.line)
        return found[0]

    def numbers(self) -> Array:
        """The numbers inside, which blanks separate."""
        try:
            return numbers("".join(self.parts).split())
        except NotANumberError as error:
            raise FormatError(str(error), line=self.line) from None

    def attribute(self, name: str) -> str:
        if name not in self.attributes:
            raise FormatError(f"<{self.tag[:60]}> has no attribute {name!r}", line=self.line)
        return self.attributes[name]


def tree(text: str) -> Element:
    """The root element of an XML text."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    top = Element("", {}, 0)
    stack = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(stack) > _MAX_DEPTH:
            raise FormatError("the elements are nested too deeply", line=parser.CurrentLineNumber)
        element = Element(tag, attributes, parser.CurrentLineNumber)
        stack[-1].children.append(element)
        stack.append(element)

    def entity(name: str, *_: object) -> None:
        raise FormatError(
            f"the entity {show(name)} is refused: files with XML entities are not read", line=parser.CurrentLineNumber
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: stack.pop()
    parser.CharacterDataHandler = lambda data: stack[-1].parts.append(data)
    parser.EntityDeclHandler = entity
    parser.SkippedEntityHandler = entity
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise FormatError(f"the XML is broken: {expat.ErrorString(error.code)}", line=error.lineno) from None
    except UnicodeEncodeError:
        raise FormatError("the text holds a character that is none") from None
    return top.children[0]


def escape_xml(text: str) -> str:
    """A text for the inside of an element or an attribute."""
    if odd := _NOT_IN_XML.search(text):
        raise FormatError(f"{show(text)} holds the character {odd[0]!r}, which XML cannot hold; write .json instead")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return text.replace("\r", "&#13;")


def element(tag: str, text: str) -> str:
    """An element around a text; blanks at its ends are marked as meant."""
    space = "" if text == text.strip(BLANKS) else ' xml:space="preserve"'
    return f"<{tag}{space}>{escape_xml(text)}</{tag}>"
