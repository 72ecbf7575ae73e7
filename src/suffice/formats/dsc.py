"""DSC, the format of Microsoft's belief network tools, as bnlearn writes it, too.

    belief network "NAME"
    node NAME { name: "a longer name"; type: discrete [ 2 ] = { "yes", "no" }; position: (1, 2); }
    probability ( CHILD | PARENT, PARENT ) { (0, 1): 0.1, 0.9;  default: 0.5, 0.5; }

Rows give the states of the parents by number from 0 up, or by name. A list without a bracket holds all numbers, the child
fastest, then the last parent. Attributes are set by `:`, `=` or `is`; all but the type are passed over. `//` and `/* */` are
comments. The writer quotes names only where they are no identifiers.
"""

from __future__ import annotations

from functools import cache

from suffice.formats.grammar.finite_network import Definition, FiniteNetwork, check_network, declare
from suffice.formats.grammar.network_format import NetworkFormat
from suffice.formats.grammar.probability_block import Codes, block_lines, by_name, head, read_rows, read_states
from suffice.formats.grammar.tokens import IDENTIFIER, Spelling, Tokens, grammar, quote, show, without_comments
from suffice.variables import Finite

_GRAMMAR = grammar("(){}[]|;:=")
_word = Spelling(IDENTIFIER, {"belief", "network", "node", "probability", "properties", "default", "is", "function"})


def read(text: str) -> FiniteNetwork:
    tokens = Tokens(without_comments(text), _GRAMMAR)
    variables: dict[str, Finite] = {}
    blocks: list[int] = []
    tokens.accept("belief")
    tokens.expect("network")
    if tokens.word not in ("node", "properties", "probability", "{", ""):
        tokens.name("the name of the network")
    if tokens.accept("{"):
        tokens.until("}")
    while tokens.word:
        at = tokens.at
        if tokens.accept("node"):
            _read_node(tokens, variables)
        elif tokens.accept("probability"):
            tokens.until("}")
            blocks.append(at)
        elif tokens.accept("properties"):
            tokens.until("}")
        elif tokens.word in ("decision", "utility"):
            raise tokens.error(f"the file has a {tokens.word} node: influence diagrams cannot be read")
        else:
            raise tokens.unexpected_token("'node' or 'probability'")
    codes = cache(_by_number)
    return check_network(variables, [_read_probability(tokens, at, variables, codes) for at in blocks])


def _by_number(variable: Finite) -> dict[str, int]:
    """The codes of the states by their number; by name where that is not a number, and quoted always by name."""
    return by_name(variable) | {str(k): k for k in range(variable.n_states)}


def _read_node(tokens: Tokens, variables: dict[str, Finite]) -> None:
    start = tokens.at
    name = tokens.name("the name of a node")
    tokens.expect("{")
    states: list[str] | None = None
    while not tokens.accept("}"):
        key = tokens.name("an attribute or '}'")
        if not (tokens.accept(":") or tokens.accept("=") or tokens.accept("is")):
            raise tokens.unexpected_token("':'")
        if key == "type":
            if states is not None:
                raise tokens.error(f"variable {show(name)} has two types")
            states = read_states(tokens, name, "=")
            if tokens.word != ";":
                raise tokens.unexpected_token("';'")
        tokens.until(";")
    if states is None:
        raise tokens.error(f"variable {show(name)} has no type", start)
    declare(variables, name, states, lambda: tokens.line(start))


def _read_probability(tokens: Tokens, at: int, variables: dict[str, Finite], codes: Codes) -> Definition:
    tokens.at = at
    block = head(tokens, variables)
    while not tokens.accept("}"):
        if tokens.word == "(":
            read_rows(block, codes, colon=True)
        elif tokens.accept("default"):
            tokens.expect(":")
            block.read_default()
        elif tokens.word in ("function", "_"):
            raise tokens.error(f"variable {show(block.child.name)} is given by a function; only tables can be read")
        else:
            block.read_everything()
    return block.definition(child_first=False)


def write(network: FiniteNetwork) -> str:
    _word.note((v.name for v in network.variables), "DSC")
    parts = ['belief network "unknown"\n']
    for variable in network.variables:
        states = ", ".join(map(quote, variable.states))
        parts.append(f"node {_word(variable.name)} {{\n  type : discrete [ {variable.n_states} ] = {{ {states} }};\n}}\n")
    numbers = {v.name: list(map(str, range(v.n_states))) for v in network.variables}
    return "".join([*parts, *block_lines(network, _word, numbers, colon=" :", alone=" ")])


class Dsc(NetworkFormat):
    """The format of files that end in .dsc."""

    word = "dsc"
    parse, text = staticmethod(read), staticmethod(write)
