"""DSL, the old text format of GeNIe. It is only read: GeNIe itself writes XDSL now.

    net NAME { node NAME { TYPE = CPT; HEADER = { ID = NAME; }; PARENTS = (A, B);
        DEFINITION = { NAMESTATES = (yes, no); PROBABILITIES = (0.1, 0.9, ...); }; }; };

The numbers stand row by row: the first parent varies slowest, the child fastest. A node of type TRUTHTABLE has
RESULTINGSTATES, a state or its number for each row. Decisions and utilities are refused, as are other types of nodes.
`//` and `/* */` are comments. Attributes that are not named here are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from suffice.formats.grammar.finite_network import Definition, FiniteNetwork, Numbers, States, check_network, declare
from suffice.formats.grammar.network_format import NetworkFormat
from suffice.formats.grammar.tokens import Tokens, grammar, show, without_comments
from suffice.variables import Finite

_GRAMMAR = grammar("(){}[];=", multiline_strings=True)
_MAX_DEPTH = 20
_DECISIONS = frozenset({"LIST", "DECISION", "TABLE", "UTILITY", "MAU"})


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


def read(text: str) -> FiniteNetwork:
    tokens = Tokens(without_comments(text, multiline_strings=True), _GRAMMAR)
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


class Dsl(NetworkFormat):
    """The format of files that end in .dsl."""

    word = "dsl"
    read_only = ".dsl is only read; write .xdsl, which GeNIe opens as well"
    parse = staticmethod(read)
