"""XMLBIF 0.3, and which of the formats in XML a file is.

    <BIF VERSION="0.3"><NETWORK>
    <VARIABLE TYPE="nature"><NAME>N</NAME><OUTCOME>yes</OUTCOME><OUTCOME>no</OUTCOME></VARIABLE>
    <DEFINITION><FOR>N</FOR><GIVEN>A</GIVEN><GIVEN>B</GIVEN><TABLE>0.1 0.9 ...</TABLE></DEFINITION>
    </NETWORK></BIF>

The child varies fastest, then the last GIVEN; the first GIVEN varies slowest. Decisions and utilities are refused; a
variable without a type is of nature. Other elements (PROPERTY, the NAME of the network) are passed over. Blanks around a
name do not count, unless `xml:space="preserve"` says so, as the writer does where it has to.
"""

from __future__ import annotations

import suffice.formats.xdsl as xdsl
from suffice.errors import FormatError
from suffice.formats.grammar.finite_network import Definition, FiniteNetwork, Numbers, check_network, declare
from suffice.formats.grammar.network_format import NetworkFormat
from suffice.formats.grammar.tokens import show
from suffice.formats.grammar.xml_tree import Element, element, tree
from suffice.variables import Finite

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<BIF VERSION="0.3">\n<NETWORK>\n<NAME>unknown</NAME>\n'


def read(text: str) -> FiniteNetwork:
    return read_tree(tree(text))


def read_tree(root: Element) -> FiniteNetwork:
    if root.tag != "BIF":
        raise FormatError(f"the root element is <{root.tag[:60]}>, not <BIF>", line=root.line)
    network = root.one("NETWORK")
    variables: dict[str, Finite] = {}
    for node in network.all("VARIABLE"):
        _declare(node, variables)
    return check_network(variables, [_definition(node) for node in network.all("DEFINITION")])


def _declare(node: Element, variables: dict[str, Finite]) -> None:
    name = node.one("NAME").content
    kind = node.attributes.get("TYPE", "nature")
    if kind in ("decision", "utility"):
        raise FormatError(f"variable {show(name)} is a {kind}: influence diagrams cannot be read", line=node.line)
    if kind != "nature":
        raise FormatError(f"variable {show(name)} is of type {show(kind)}; only nature can be read", line=node.line)
    declare(variables, name, [outcome.content for outcome in node.all("OUTCOME")], lambda: node.line)


def _definition(node: Element) -> Definition:
    if len(list(node.all("FOR"))) > 1:
        raise FormatError("the definition is for several variables together; only one can be read", line=node.line)
    child = node.one("FOR").content
    table = node.one("TABLE")
    if table.children:
        raise FormatError(f"the table of {show(child)} holds <{table.children[0].tag[:60]}>, not only numbers", line=table.line)
    return Definition(child, tuple(given.content for given in node.all("GIVEN")), Numbers(table.numbers()), lambda _: table.line)


def write(network: FiniteNetwork) -> str:
    parts = [_HEAD]
    for variable in network.variables:
        outcomes = "".join(f"  {element('OUTCOME', state)}\n" for state in variable.states)
        parts.append(f'<VARIABLE TYPE="nature">\n  {element("NAME", variable.name)}\n{outcomes}</VARIABLE>\n')
    for name, table in network.tables.items():
        given = "".join(f"  {element('GIVEN', parent)}\n" for parent in table.parents)
        rows = "\n".join(table.rows())
        parts.append(f"<DEFINITION>\n  {element('FOR', name)}\n{given}  <TABLE>\n{rows}\n  </TABLE>\n</DEFINITION>\n")
    return "".join(parts) + "</NETWORK>\n</BIF>\n"


def read_xml(text: str) -> FiniteNetwork:
    """XMLBIF or XDSL, by the root element."""
    root = tree(text)
    if root.tag not in ("BIF", "smile"):
        raise FormatError(f"the root element is <{root.tag[:60]}>; it must be <BIF> (XMLBIF) or <smile> (XDSL)", line=root.line)
    return read_tree(root) if root.tag == "BIF" else xdsl.read_tree(root)


class XmlBif(NetworkFormat):
    """The format of files that end in .xmlbif, .bifxml or .xml."""

    word = "xmlbif bifxml xml"
    is_xml = True
    parse, text = staticmethod(read_xml), staticmethod(write)


class Xdsl(NetworkFormat):
    """The format of files that end in .xdsl."""

    word = "xdsl"
    is_xml = True
    parse, text = staticmethod(read_xml), staticmethod(xdsl.write)
