"""XMLBIF 0.3 and XDSL, the networks in XML, and which of the two a file is.

    <BIF VERSION="0.3"><NETWORK>
    <VARIABLE TYPE="nature"><NAME>N</NAME><OUTCOME>yes</OUTCOME><OUTCOME>no</OUTCOME></VARIABLE>
    <DEFINITION><FOR>N</FOR><GIVEN>A</GIVEN><GIVEN>B</GIVEN><TABLE>0.1 0.9 ...</TABLE></DEFINITION>
    </NETWORK></BIF>

The child varies fastest, then the last GIVEN; the first GIVEN varies slowest. Decisions and utilities are refused; a
variable without a type is of nature. Other elements (PROPERTY, the NAME of the network) are passed over. Blanks around a
name do not count, unless `xml:space="preserve"` says so, as the writer does where it has to.

XDSL, the format of GeNIe and SMILE.

    <smile version="1.0" id="N"><nodes>
    <cpt id="A"><state id="yes" /><state id="no" /><parents>B C</parents><probabilities>0.1 0.9 ...</probabilities></cpt>
    <deterministic id="D">...<resultingstates>yes no</resultingstates></deterministic>
    </nodes><extensions>...</extensions></smile>

The child varies fastest, then the last parent; the first parent varies slowest. aGrUM writes such files with the first parent
before the last: its files are known by their `app`, and read as they are meant. Where rows do not sum to 1 unless the child
varies slowest, a table is read so. Both are noted. Decisions and utilities are refused, as are equations and noisy nodes.

A variable is named by its id, which has to be an identifier: where a name or state is none, the writer makes one up and keeps the
true one in a user property (`suffice_name`, `suffice_states`), which GeNIe keeps and the reader goes by as long as it still fits
the id. Nodes are written parents first, in the `genie` extension in their own order.

XML is read by expat into a tree that knows its lines; no entity may be declared, nothing is fetched, depth is limited. A document
type without entities is fine.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from xml.parsers import expat

import numpy as np

from suffice.basis.variables import Finite
from suffice.errors import FormatError, listing
from suffice.formats.grammar.finite_network import TOLERANCE, Definition, FiniteNetwork, Numbers, States, check_network, declare
from suffice.formats.grammar.network_format import NetworkFormat
from suffice.formats.grammar.tokens import Array, NotANumberError, numbers, show
from suffice.graphs import Dag

BLANKS = " \t\r\n"
_MAX_DEPTH = 50
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<BIF VERSION="0.3">\n<NETWORK>\n<NAME>unknown</NAME>\n'
_APP = "Suffice"
_COLUMNS = 8


def read_xml(text: str) -> FiniteNetwork:
    """XMLBIF or XDSL, by the root element."""
    root = tree(text)
    if root.tag not in ("BIF", "smile"):
        raise FormatError(f"the root element is <{root.tag[:60]}>; it must be <BIF> (XMLBIF) or <smile> (XDSL)", line=root.line)
    return _read_xmlbif(root) if root.tag == "BIF" else _read_xdsl(root)


def _read_xmlbif(root: Element) -> FiniteNetwork:
    network = root.one("NETWORK")
    variables: dict[str, Finite] = {}
    for node in network.all("VARIABLE"):
        name = node.one("NAME").content
        kind = node.attributes.get("TYPE", "nature")
        if kind in ("decision", "utility"):
            raise FormatError(f"variable {show(name)} is a {kind}: influence diagrams cannot be read", line=node.line)
        if kind != "nature":
            raise FormatError(f"variable {show(name)} is of type {show(kind)}; only nature can be read", line=node.line)
        declare(variables, name, [outcome.content for outcome in node.all("OUTCOME")], partial(getattr, node, "line"))
    return check_network(variables, [_definition(node) for node in network.all("DEFINITION")])


def _definition(node: Element) -> Definition:
    if len(list(node.all("FOR"))) > 1:
        raise FormatError("the definition is for several variables together; only one can be read", line=node.line)
    child = node.one("FOR").content
    table = node.one("TABLE")
    if table.children:
        raise FormatError(f"the table of {show(child)} holds <{table.children[0].tag[:60]}>, not only numbers", line=table.line)
    return Definition(child, tuple(given.content for given in node.all("GIVEN")), Numbers(table.numbers()), lambda _: table.line)


def write_xmlbif(network: FiniteNetwork) -> str:
    parts = [_HEAD]
    for variable in network.variables:
        outcomes = "".join(f"  {element('OUTCOME', state)}\n" for state in variable.states)
        parts.append(f'<VARIABLE TYPE="nature">\n  {element("NAME", variable.name)}\n{outcomes}</VARIABLE>\n')
    for name, table in network.tables.items():
        given = "".join(f"  {element('GIVEN', parent)}\n" for parent in table.parents)
        rows = "\n".join(table.rows())
        parts.append(f"<DEFINITION>\n  {element('FOR', name)}\n{given}  <TABLE>\n{rows}\n  </TABLE>\n</DEFINITION>\n")
    return "".join(parts) + "</NETWORK>\n</BIF>\n"


def _read_xdsl(root: Element) -> FiniteNetwork:
    nodes = {}
    for node in root.one("nodes").children:
        if node.tag in ("decision", "utility", "mau"):
            key = show(node.attributes.get("id", ""))
            raise FormatError(f"node {key} is a {node.tag}: influence diagrams cannot be read", line=node.line)
        if node.tag not in ("cpt", "deterministic"):
            raise FormatError(
                f"a node of type <{node.tag[:60]}> cannot be read; only tables (<cpt>, <deterministic>) can", line=node.line
            )
        if node.attribute("id") in nodes:
            raise FormatError(f"variable {show(node.attribute('id'))} is declared twice", line=node.line)
        nodes[node.attribute("id")] = node
    genies = [genie for extensions in root.all("extensions") for genie in extensions.all("genie")]
    names = {key: _name(key, node) for key, node in nodes.items()}
    states = {key: [state.attribute("id") for state in node.all("state")] for key, node in nodes.items()}
    variables: dict[str, Finite] = {}
    for key in _in_order(genies, list(nodes)):
        declare(variables, names[key], _states(states[key], nodes[key]), partial(getattr, nodes[key], "line"))
    by_agrum = any(genie.attributes.get("app", "").startswith("aGrUM") for genie in genies)
    order = TableOrder(by_agrum, {key: len(own) for key, own in states.items()})
    definitions = [_node_definition(node, names, states[key], order) for key, node in nodes.items()]
    return check_network(variables, definitions, notes=order.notes())


@dataclass
class TableOrder:
    """In which order the tables of a file are written, as far as it gives that away."""

    reversed: bool
    sizes: dict[str, int]
    turned: list[str] = field(default_factory=list)
    child_first: list[str] = field(default_factory=list)

    def numbers(self, name: str, values: Array, parents: Sequence[str], n_states: int) -> Numbers:
        """The numbers of a table, the last parent before the first and the child fastest, unless its rows say otherwise."""
        shape = [self.sizes.get(parent, 0) for parent in parents]
        if values.size != n_states * math.prod(shape):  # which `check_network` refuses
            return Numbers(values)
        if self.reversed and len(parents) > 1:
            self.turned.append(name)
            table = values.reshape(*shape[::-1], n_states)
            return Numbers(table.transpose(*range(len(shape))[::-1], len(shape)).reshape(-1))
        by_rows, by_columns = values.reshape(-1, n_states).sum(axis=1), values.reshape(n_states, -1).sum(axis=0)
        by_child, by_parents = (bool(np.all(np.abs(sums - 1.0) <= TOLERANCE)) for sums in (by_rows, by_columns))
        if parents and by_parents and not by_child:
            self.child_first.append(name)
            return Numbers(values, child_first=True)
        return Numbers(values)

    def notes(self) -> list[str]:
        """What is said of tables in another order."""
        told = []
        if self.turned:
            told.append(
                f"the file is aGrUM's, whose tables have the first parent vary before the last, not as GeNIe's: "
                f"{listing(self.turned)} {'is' if len(self.turned) == 1 else 'are'} read so"
            )
        if self.child_first:
            told.append(f"the rows of {listing(self.child_first)} sum to 1 only where the child varies slowest, and are read so")
        return told


def _node_definition(node: Element, names: dict[str, str], states: list[str], order: TableOrder) -> Definition:
    name = names[node.attribute("id")]
    keys = " ".join(element.content for element in node.all("parents")).split()
    parents = tuple(names.get(key, key) for key in keys)
    if node.tag == "cpt":
        table = node.one("probabilities")
        numbers = order.numbers(name, table.numbers(), keys, len(states))
        return Definition(name, parents, numbers, lambda _: table.line)
    table = node.one("resultingstates")
    codes = {state: k for k, state in enumerate(states)}
    results = table.content.split()
    if unknown := [state for state in results if state not in codes]:
        raise FormatError(f"variable {show(name)} has no state {show(unknown[0])}", line=table.line)
    return Definition(name, parents, States([codes[state] for state in results]), lambda _: table.line)


def _name(key: str, node: Element) -> str:
    """The true name of a node, which its id was made from: perhaps with a number to tell it from another."""
    kept = _user_property(node, "suffice_name")
    made_from = isinstance(kept, str) and re.fullmatch(rf"{re.escape(_identifier(kept))}(?:_[0-9]+)?", key)
    return kept if isinstance(kept, str) and made_from else key


def _states(keys: list[str], node: Element) -> list[str]:
    """The true names of the states, if the ids are still those that were made from them."""
    kept = _user_property(node, "suffice_states")
    fits = isinstance(kept, list) and all(isinstance(state, str) for state in kept) and identifiers(kept) == keys
    return kept if isinstance(kept, list) and fits else keys


def _user_property(node: Element, key: str) -> object:
    """What a user property of a node holds as JSON; None without one that can be read."""
    text = next((p.content for p in node.all("property") if p.attributes.get("id") == key), None)
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def _in_order(genies: list[Element], keys: list[str]) -> list[str]:
    """The ids in the order of the extension, if we wrote it."""
    for genie in genies:
        listed = [node.attributes.get("id", "") for node in genie.all("node")]
        if genie.attributes.get("app") == _APP and sorted(listed) == sorted(keys):
            return listed
    return keys


def _identifier(name: str) -> str:
    """The name with a letter first, and only letters, digits and underscores; what is not ASCII counts as a letter."""
    plain = re.sub(r"[^A-Za-z0-9_\u0080-\U0010ffff]|\s", "_", name)
    return plain if re.match(r"[A-Za-z\u0080-\U0010ffff]", plain) else f"s{plain}" if plain.strip("_") else "s"


def identifiers(names: Sequence[str]) -> list[str]:
    """An identifier for each name, all different."""
    made = [_identifier(name) for name in names]
    taken = {key for key, name in zip(made, names, strict=True) if key == name}
    counts: dict[str, int] = {}
    result = []
    for key, name in zip(made, names, strict=True):
        unique = key
        while key != name and unique in taken:
            counts[key] = counts.get(key, 1) + 1
            unique = f"{key}_{counts[key]}"
        taken.add(unique)
        result.append(unique)
    return result


def write_xdsl(network: FiniteNetwork) -> str:
    names = [variable.name for variable in network.variables]
    keys = dict(zip(names, identifiers(names), strict=True))
    variables = {variable.name: variable for variable in network.variables}
    order = Dag({name: list(table.parents) for name, table in network.tables.items()}, nodes=names).topological_order
    nodes = "".join(_node(variables[name], network, keys) for name in order)
    shapes = "".join(_shape(keys[name], name, k) for k, name in enumerate(names))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<smile version="1.0" id="Network" numsamples="10000" discsamples="10000">\n'
        f"\t<nodes>\n{nodes}\t</nodes>\n\t<extensions>\n"
        f'\t\t<genie version="1.0" app="{_APP}" name="Network" faultnameformat="nodestate">\n{shapes}\t\t</genie>\n'
        "\t</extensions>\n</smile>\n"
    )


def _node(variable: Finite, network: FiniteNetwork, keys: dict[str, str]) -> str:
    key, states = keys[variable.name], identifiers(variable.states)
    parents, probs = network.tables[variable.name]
    lines = [f'<cpt id="{escape_xml(key)}">', *(f'\t<state id="{escape_xml(state)}" />' for state in states)]
    if parents:
        lines.append(f"\t<parents>{escape_xml(' '.join(keys[parent] for parent in parents))}</parents>")
    lines.append(f"\t<probabilities>{' '.join(map(repr, probs.reshape(-1).tolist()))}</probabilities>")
    if key != variable.name:
        lines.append(f'\t<property id="suffice_name">{escape_xml(json.dumps(variable.name))}</property>')
    if tuple(states) != variable.states:
        lines.append(f'\t<property id="suffice_states">{escape_xml(json.dumps(list(variable.states)))}</property>')
    return "".join(f"\t\t{line}\n" for line in [*lines, "</cpt>"])


def _shape(key: str, name: str, k: int) -> str:
    """How GeNIe shows a node: its name, and a place in a grid."""
    left, top = 40 + 130 * (k % _COLUMNS), 40 + 80 * (k // _COLUMNS)
    title = escape_xml("".join(c if c.isprintable() else " " for c in name).strip(BLANKS))
    return (
        f'\t\t\t<node id="{escape_xml(key)}">\n\t\t\t\t<name>{title}</name>\n\t\t\t\t<interior color="e5f6f7" />\n'
        '\t\t\t\t<outline color="000080" />\n\t\t\t\t<font color="000000" name="Arial" size="8" />\n'
        f"\t\t\t\t<position>{left} {top} {left + 100} {top + 50}</position>\n\t\t\t</node>\n"
    )


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


class XmlBif(NetworkFormat):
    """The format of files that end in .xmlbif, .bifxml or .xml."""

    word = "xmlbif bifxml xml"
    is_xml = True
    parse, text = staticmethod(read_xml), staticmethod(write_xmlbif)


class Xdsl(NetworkFormat):
    """The format of files that end in .xdsl."""

    word = "xdsl"
    is_xml = True
    parse, text = staticmethod(read_xml), staticmethod(write_xdsl)
