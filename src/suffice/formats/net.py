"""NET, the network language of HUGIN (its second and third revision, discrete chance nodes).

    net { node_size = (80 40); }
    node NAME { states = ("yes" "no"); label = "..."; }
    potential ( CHILD | PARENT PARENT ) { data = (((0.1 0.9)(0.2 0.8))((0.5 0.5)(1 0))); }

The numbers stand row by row: the first parent varies slowest, the child fastest, in brackets nested accordingly or in one
bracket. They are weights: each row is divided by its sum; a potential without data has equal weights. `%` opens a comment
up to the end of the line. `class NAME { ... }` may hold the nodes. Decisions, utilities, continuous nodes, functions and
instances of other networks are refused. The writer quotes the names of nodes only where they are no identifiers.
"""

from __future__ import annotations

import numpy as np

from suffice.formats.grammar.finite_network import Definition, FiniteNetwork, Numbers, Rows, check_network, declare, variable_of
from suffice.formats.grammar.network_format import NetworkFormat
from suffice.formats.grammar.tokens import IDENTIFIER, Spelling, Tokens, grammar, quote, show, without_comments
from suffice.variables import Finite

_GRAMMAR = grammar("(){}[]|;=", multiline_strings=True)
_word = Spelling(
    IDENTIFIER, ["net", "class", "node", "discrete", "continuous", "decision", "utility", "function", "instance", "potential"]
)


def read(text: str) -> FiniteNetwork:
    tokens = Tokens(without_comments(text, line="%", block=False, multiline_strings=True), _GRAMMAR)
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


def write(network: FiniteNetwork) -> str:
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


class Net(NetworkFormat):
    """The format of files that end in .net."""

    word = "net"
    parse, text = staticmethod(read), staticmethod(write)
