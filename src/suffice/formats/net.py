"""NET, the network language of HUGIN (its second and third revision, discrete chance nodes).

    net { node_size = (80 40); }
    node NAME { states = ("yes" "no"); label = "..."; }
    potential ( CHILD | PARENT PARENT ) { data = (((0.1 0.9)(0.2 0.8))((0.5 0.5)(1 0))); }

The numbers stand row by row: the first parent varies slowest, the child fastest, in brackets nested accordingly or in one
bracket. They are weights: each row is divided by its sum; a potential without data has equal weights. `%` opens a comment
up to the end of the line. `class NAME { ... }` may hold the nodes. Decisions, utilities, continuous nodes, functions and
instances of other networks are refused. The writer quotes the names of nodes only where they are no identifiers.

DSL, the old text format of GeNIe. It is only read: GeNIe itself writes XDSL now.

    net NAME { node NAME { TYPE = CPT; HEADER = { ID = NAME; }; PARENTS = (A, B);
        DEFINITION = { NAMESTATES = (yes, no); PROBABILITIES = (0.1, 0.9, ...); }; }; };

The numbers stand row by row: the first parent varies slowest, the child fastest. A node of type TRUTHTABLE has
RESULTINGSTATES, a state or its number for each row. Decisions and utilities are refused, as are other types of nodes.
`//` and `/* */` are comments. Attributes that are not named here are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from suffice.basis.variables import Finite
from suffice.formats.grammar.finite_network import (
    Definition,
    FiniteNetwork,
    Numbers,
    Rows,
    States,
    check_network,
    declare,
    variable_of,
)
from suffice.formats.grammar.network_format import NetworkFormat
from suffice.formats.grammar.tokens import IDENTIFIER, Spelling, Tokens, grammar, quote, show, without_comments

_NET = grammar("(){}[]|;=", multiline_strings=True)
_word = Spelling(
    IDENTIFIER, ["net", "class", "node", "discrete", "continuous", "decision", "utility", "function", "instance", "potential"]
)
_DSL = grammar("(){}[];=", multiline_strings=True)
_MAX_DEPTH = 20
_DECISIONS = frozenset({"LIST", "DECISION", "TABLE", "UTILITY", "MAU"})


def read_net(text: str) -> FiniteNetwork:
    tokens = Tokens(without_comments(text, line="%", block=False, multiline_strings=True), _NET)
    variables: dict[str, Finite] = {}
    potentials: list[int] = []
    classes = 0
    while tokens.word:
        if tokens.accept("net"):
            _read_attributes(tokens)
        elif tokens.accept("class"):
            tokens.name("the name of the class")
            tokens.expect("{")
            classes += 1
        elif classes and tokens.accept("}"):
            classes -= 1
        elif tokens.word in ("node", "discrete"):
            _read_node(tokens, variables)
        elif tokens.word == "potential":
            potentials.append(tokens.at)
            tokens.until("}")
        elif tokens.word in ("decision", "utility"):
            raise tokens.error(f"the file has a {tokens.word} node: influence diagrams cannot be read")
        elif tokens.word in ("continuous", "function", "instance"):
            raise tokens.error(f"the file has a {tokens.word} node: only discrete nodes can be read")
        elif classes:
            tokens.name("an attribute of the class")
            tokens.expect("=")
            tokens.until(";")
        else:
            raise tokens.unexpected_token("'net', 'node' or 'potential'")
    if classes:
        raise tokens.unexpected_token("'}'")
    definitions = [_read_potential(tokens, at, variables) for at in potentials]
    empty = [d.child for d in definitions if isinstance(d.content, Rows)]
    notes = [f"the potential of {show(empty[0])} has no data and is taken as uniform"] if empty else []
    return check_network(variables, definitions, weights=True, notes=notes)


def _read_attributes(tokens: Tokens) -> dict[str, tuple[int, list[str]]]:
    """`{ key = value ; ... }`: where each value stands, and its words."""
    tokens.expect("{")
    found: dict[str, tuple[int, list[str]]] = {}
    while not tokens.accept("}"):
        key = tokens.name("an attribute or '}'")
        tokens.expect("=")
        at = tokens.at
        found[key] = (at, tokens.until(";"))
    return found


def _read_node(tokens: Tokens, variables: dict[str, Finite]) -> None:
    start = tokens.at
    tokens.accept("discrete")
    tokens.expect("node")
    name = tokens.name("the name of a node")
    attributes = _read_attributes(tokens)
    if "states" not in attributes:
        raise tokens.error(f"variable {show(name)} has no states", start)
    at, words = attributes["states"]
    if len(words) < 2 or words[0] != "(" or words[-1] != ")":
        raise tokens.unexpected_token("a list of states in brackets", at)
    declare(variables, name, tokens.names(words[1:-1], at + 1, "a state"), lambda: tokens.line(start))


def _read_potential(tokens: Tokens, at: int, variables: dict[str, Finite]) -> Definition:
    tokens.at = at
    tokens.expect("potential", "(")
    child = tokens.name("the name of a node")
    parents: list[str] = []
    if tokens.accept("|"):
        start = tokens.at
        parents = tokens.names(tokens.until(")"), start, "the name of a parent")
    elif not tokens.accept(")"):
        raise tokens.unexpected_token("')' or '|' after the one node that the potential defines")
    sizes = [variable_of(variables, name, lambda: tokens.line(at)).n_states for name in (*parents, child)]
    attributes = _read_attributes(tokens)
    if "model_nodes" in attributes or "model_data" in attributes:
        raise tokens.error(f"the potential of {show(child)} is given by a function; only tables can be read", at)
    if "data" not in attributes:
        return Definition(child, tuple(parents), Rows((), np.empty(0), np.ones(sizes[-1])), lambda _: tokens.line(at))
    start, words = attributes["data"]
    values = tokens.numbers([word for word in words if word not in "()"], start)
    if not _is_nested(words, sizes, values.size):
        raise tokens.error(f"the brackets around the data of {show(child)} do not fit its parents and states", start)
    return Definition(child, tuple(parents), Numbers(values), lambda _: tokens.line(start))


def _is_nested(words: list[str], sizes: list[int], n_numbers: int) -> bool:
    """Whether the brackets are one for all or one for each axis. If the count is wrong, that is the better complaint."""
    found = "".join([word if word in "()" else "." for word in words])
    if found == f"({'.' * n_numbers})":
        return True
    wanted, n = "", 1
    for size in reversed(sizes):
        n *= size
        if n > n_numbers:
            return found.startswith("(") and found.endswith(")")
        wanted = f"({(wanted or '.') * size})"
    return n != n_numbers or found == wanted


def write_net(network: FiniteNetwork) -> str:
    _word.note((v.name for v in network.variables), "NET")
    parts = ["net\n{\n}\n"]
    for variable in network.variables:
        parts.append(f"node {_word(variable.name)}\n{{\n  states = ( {' '.join(map(quote, variable.states))} );\n}}\n")
    for name, table in network.tables.items():
        pieces = [f"({row})" for row in table.rows()]
        for size in reversed(table.probs.shape[:-1]):
            pieces = [f"({''.join(pieces[k : k + size])})" for k in range(0, len(pieces), size)]
        given = f" | {' '.join(map(_word, table.parents))}" if table.parents else ""
        parts.append(f"potential ( {_word(name)}{given} )\n{{\n  data = {pieces[0]};\n}}\n")
    return "".join(parts)


@dataclass
class _Node:
    """A node: where it stands, and the words of its attributes with the place of the first."""

    at: int
    name: str
    attributes: dict[str, tuple[int, list[str]]] = field(default_factory=dict)

    def attribute(self, tokens: Tokens, key: str) -> tuple[int, list[str]]:
        if key not in self.attributes:
            raise tokens.error(f"variable {show(self.name)} has no {key}", self.at)
        return self.attributes[key]

    def read_list(self, tokens: Tokens, key: str) -> tuple[int, list[str]]:
        """The words between the brackets of a list."""
        at, words = self.attribute(tokens, key)
        if len(words) < 2 or words[0] != "(" or words[-1] != ")":
            raise tokens.unexpected_token("a list in brackets", at)
        return at + 1, words[1:-1]


def read_dsl(text: str) -> FiniteNetwork:
    tokens = Tokens(without_comments(text, multiline_strings=True), _DSL)
    tokens.expect("net")
    if tokens.word != "{":
        tokens.name("the name of the network")
    tokens.expect("{")
    nodes = _read_nodes(tokens)
    variables: dict[str, Finite] = {}
    for node in nodes:
        at, words = node.attribute(tokens, "TYPE")
        kind = " ".join(words)
        if kind in _DECISIONS:
            raise tokens.error(f"node {show(node.name)} is of type {kind}: influence diagrams cannot be read", at)
        if kind not in ("CPT", "TRUTHTABLE"):
            raise tokens.error(f"node {show(node.name)} is of type {show(kind)}; only tables (CPT, TRUTHTABLE) can be read", at)
        at, words = node.read_list(tokens, "NAMESTATES")
        declare(variables, node.name, tokens.names(words, at, "a state"), partial(tokens.line, node.at))
    return check_network(variables, [_definition(tokens, node, variables[node.name]) for node in nodes])


def _read_nodes(tokens: Tokens) -> list[_Node]:
    """The nodes up to the bracket that closes the network, with their attributes at any depth."""
    nodes: list[_Node] = []
    inside: list[str] = []
    while True:
        if tokens.accept("}"):
            tokens.accept(";")
            if not inside:
                break
            inside.pop()
        elif tokens.word == "node" and not inside:
            tokens.at += 1
            nodes.append(_Node(tokens.at, tokens.name("the name of a node")))
            tokens.expect("{")
            inside.append("node")
        else:
            key = tokens.name("an attribute or '}'")
            if tokens.accept("="):
                at = tokens.at
                if not tokens.accept("{"):
                    words = tokens.until(";")
                    if inside[:1] == ["node"]:
                        nodes[-1].attributes.setdefault(key, (at, words))
                    continue
            else:
                tokens.name("a name")
                tokens.expect("{")
            inside.append(key)
            if len(inside) > _MAX_DEPTH:
                raise tokens.error("the brackets are nested too deeply")
    if tokens.word:
        raise tokens.unexpected_token("the end of the file")
    return nodes


def _definition(tokens: Tokens, node: _Node, variable: Finite) -> Definition:
    at, words = node.read_list(tokens, "PARENTS")
    parents = tuple(tokens.names(words, at, "the name of a parent"))
    if node.attributes["TYPE"][1] == ["CPT"]:
        at, words = node.read_list(tokens, "PROBABILITIES")
        return Definition(node.name, parents, Numbers(tokens.numbers(words, at)), lambda _: tokens.line(at))
    at, words = node.read_list(tokens, "RESULTINGSTATES")
    codes = {state: k for k, state in enumerate(variable.states)}
    numbers = {str(k): k for k in range(variable.n_states)}
    found = []
    for k, state in enumerate(tokens.names(words, at, "a state")):
        if state not in codes and state not in numbers:
            raise tokens.error(f"variable {show(node.name)} has no state {show(state)}", at + k)
        found.append(codes[state] if state in codes else numbers[state])
    return Definition(node.name, parents, States(found), lambda _: tokens.line(at))


class Net(NetworkFormat):
    """The format of files that end in .net."""

    word = "net"
    parse, text = staticmethod(read_net), staticmethod(write_net)


class Dsl(NetworkFormat):
    """The format of files that end in .dsl."""

    word = "dsl"
    read_only = ".dsl is only read; write .xdsl, which GeNIe opens as well"
    parse = staticmethod(read_dsl)
