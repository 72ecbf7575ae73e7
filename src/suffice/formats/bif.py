"""BIF, the Interchange Format for Bayesian Networks 0.15 and the dialects that grew from it.

    network NAME { }
    variable NAME { type discrete [ 2 ] { yes, no }; }
    probability ( CHILD | PARENT, PARENT ) { (yes, no) 0.1, 0.9;  default 0.5, 0.5;  table ...; }

Rows may stand in any order, their numbers are those of the child's states; `default` holds for the rows that are not named.
In a `table` with parents the child varies slowest and the last parent fastest. Commas may be blanks; names are words or
quoted strings (with the escapes `\\" \\\\ \\n \\r \\t`); `//` and `/* */` are comments; `property` lines are passed over, also
without their semicolon, but for `property function`, which makes a table something else. Blocks come in any order. The
writer names every row and quotes only what is no plain word.

DSC is the format of Microsoft's belief network tools, as bnlearn writes it, too.

    belief network "NAME"
    node NAME { name: "a longer name"; type: discrete [ 2 ] = { "yes", "no" }; position: (1, 2); }
    probability ( CHILD | PARENT, PARENT ) { (0, 1): 0.1, 0.9;  default: 0.5, 0.5; }

Rows give the states of the parents by number from 0 up, or by name. A list without a bracket holds all numbers, the child
fastest, then the last parent. Attributes are set by `:`, `=` or `is`; all but the type are passed over. `//` and `/* */` are
comments. The writer quotes names only where they are no identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product

from suffice.basis.variables import Finite
from suffice.errors import FormatError
from suffice.formats.grammar.finite_network import (
    MAX_PARENTS,
    Definition,
    FiniteNetwork,
    Numbers,
    Rows,
    check_network,
    declare,
    many_parents,
    variable_of,
)
from suffice.formats.grammar.network_format import NetworkFormat
from suffice.formats.grammar.tokens import IDENTIFIER, Array, Spelling, Tokens, grammar, hint, quote, show, without_comments

_BIF = grammar("(){}[]|;", special=r'property(?=[ \t]+[^\s,){}|;])(?:"[^"\n]*+"|[^;\n])*+;?+|')
_FUNCTION = re.compile(r"property\s+function\b")
_bif_word = Spelling(re.compile(r"[\w.<>=+-]+"), {"property"})
_DSC = grammar("(){}[]|;:=")
_dsc_word = Spelling(IDENTIFIER, {"belief", "network", "node", "probability", "properties", "default", "is", "function"})

Codes = Callable[[Finite], dict[str, int]]
"""The codes of a variable's states, by how they may be written."""


def read_bif(text: str) -> FiniteNetwork:
    tokens = Tokens(without_comments(text), _BIF)
    if "," in tokens.words:
        raise tokens.error("a comma has nothing before or after it to separate", tokens.words.index(","))
    variables: dict[str, Finite] = {}
    blocks: list[int] = []
    while tokens.word:
        at = tokens.at
        if tokens.accept("network"):
            if tokens.word != "{":
                tokens.name("the name of the network")
            tokens.expect("{")
            _properties(tokens, ("}",))
            tokens.expect("}")
        elif tokens.accept("variable"):
            _read_variable(tokens, variables)
        elif tokens.accept("probability"):
            tokens.until("}")
            blocks.append(at)
        elif not _properties(tokens, ("network", "variable", "probability", "")):
            raise tokens.unexpected_token("'network', 'variable' or 'probability'")
    codes = cache(by_name)
    return check_network(variables, [_read_bif_block(tokens, at, variables, codes) for at in blocks])


def _properties(tokens: Tokens, follow: tuple[str, ...]) -> bool:
    """Pass over properties. One without a semicolon ends with its line, unless the next line is none of `follow`."""
    start = tokens.at
    while tokens.word.startswith(("property ", "property\t")):
        tokens.at += 1
        going_on = not tokens.words[tokens.at - 1].endswith(";") and not tokens.word.startswith("property")
        if going_on and tokens.word not in follow:
            tokens.until(";")
    return tokens.at > start


def _read_variable(tokens: Tokens, variables: dict[str, Finite]) -> None:
    start = tokens.at
    name = tokens.name("the name of a variable")
    tokens.expect("{")
    states: list[str] | None = None
    while not tokens.accept("}"):
        if _properties(tokens, ("type", "}")):
            continue
        if states is not None:
            raise tokens.unexpected_token("'}'")
        tokens.expect("type")
        states = read_states(tokens, name)
        tokens.expect(";")
    if states is None:
        raise tokens.error(f"variable {show(name)} has no type", start)
    declare(variables, name, states, lambda: tokens.line(start))


def _read_bif_block(tokens: Tokens, at: int, variables: dict[str, Finite], codes: Codes) -> Definition:
    tokens.at = at
    block = head(tokens, variables)
    while not tokens.accept("}"):
        if tokens.word == "(":
            read_rows(block, codes, colon=False)
        elif tokens.accept("table"):
            block.read_everything()
        elif tokens.accept("default"):
            block.read_default()
        elif _FUNCTION.match(tokens.word):
            raise tokens.error(f"variable {show(block.child.name)} is given by a function; only tables can be read")
        elif not _properties(tokens, ("(", "table", "default", "}")):
            raise tokens.unexpected_token("a row, 'table', 'default' or '}'")
    return block.definition(child_first=True)


def write_bif(network: FiniteNetwork) -> str:
    states = {v.name: [_bif_word(s) for s in v.states] for v in network.variables}
    parts = ["network unknown {\n}\n"]
    for name, words in states.items():
        parts.append(f"variable {_bif_word(name)} {{\n  type discrete [ {len(words)} ] {{ {', '.join(words)} }};\n}}\n")
    return "".join([*parts, *block_lines(network, _bif_word, states, colon="", alone="table")])


def read_dsc(text: str) -> FiniteNetwork:
    tokens = Tokens(without_comments(text), _DSC)
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
    return check_network(variables, [_read_dsc_block(tokens, at, variables, codes) for at in blocks])


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


def _read_dsc_block(tokens: Tokens, at: int, variables: dict[str, Finite], codes: Codes) -> Definition:
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


def write_dsc(network: FiniteNetwork) -> str:
    _dsc_word.note((v.name for v in network.variables), "DSC")
    parts = ['belief network "unknown"\n']
    for variable in network.variables:
        states = ", ".join(map(quote, variable.states))
        parts.append(f"node {_dsc_word(variable.name)} {{\n  type : discrete [ {variable.n_states} ] = {{ {states} }};\n}}\n")
    numbers = {v.name: list(map(str, range(v.n_states))) for v in network.variables}
    return "".join([*parts, *block_lines(network, _dsc_word, numbers, colon=" :", alone=" ")])


@dataclass
class ProbabilityBlock:
    """A block as far as it is read."""

    tokens: Tokens
    start: int
    child: Finite
    parents: tuple[Finite, ...]
    row_at: dict[int, int] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    default: Array | None = None
    everything: Array | None = None

    def definition(self, *, child_first: bool) -> Definition:
        names = tuple(p.name for p in self.parents)
        if self.everything is None and self.default is None and not self.row_at:
            raise self.tokens.error(f"variable {show(self.child.name)} has no probabilities", self.start)
        if self.everything is not None and (self.row_at or self.default is not None):
            raise self.tokens.error(f"variable {show(self.child.name)} has both a table and rows", self.start)
        if self.everything is not None:
            return Definition(self.child.name, names, Numbers(self.everything, child_first), lambda _: self.line(None))
        values = self.tokens.numbers(self.words, self.start)
        return Definition(self.child.name, names, Rows(list(self.row_at), values, self.default), self.line)

    def line(self, row: int | None) -> int:
        return self.tokens.line(self.start if row is None else self.row_at.get(row, self.start))

    def read_default(self) -> None:
        if self.default is not None:
            raise self.tokens.error(f"variable {show(self.child.name)} has two default rows")
        at = self.tokens.at
        self.default = self.read_numbers()
        if self.default.size != self.child.n_states:
            raise self.wrong_count(self.default.size, at)

    def read_everything(self) -> None:
        if self.everything is not None:
            raise self.tokens.error(f"variable {show(self.child.name)} has two tables")
        self.everything = self.read_numbers()

    def read_numbers(self) -> Array:
        at = self.tokens.at
        return self.tokens.numbers(self.tokens.until(";"), at)

    def wrong_count(self, n: int, at: int) -> FormatError:
        return self.tokens.error(f"the row has {n} numbers for the {self.child.n_states} states of {show(self.child.name)}", at)


def by_name(variable: Finite) -> dict[str, int]:
    """The codes of the states as they are written, in quotes and without."""
    plain = {state: k for k, state in enumerate(variable.states) if not state.startswith('"')}
    return plain | {quote(state): k for k, state in enumerate(variable.states)}


def read_states(tokens: Tokens, name: str, *mark: str) -> list[str]:
    """The type of a variable: `discrete [ 2 ] { yes, no }`, in DSC with a mark before the states."""
    if tokens.word != "discrete":
        raise tokens.error(f"variable {show(name)} is of type {show(tokens.word)}; only discrete variables can be read")
    tokens.expect("discrete", "[")
    n_states = tokens.count("the number of states")
    tokens.expect("]", *mark, "{")
    at = tokens.at
    states = tokens.names(tokens.until("}"), at, "a state")
    if n_states != len(states):
        raise tokens.error(f"variable {show(name)} declares {n_states} states and lists {len(states)}", at)
    return states


def block_lines(
    network: FiniteNetwork, word: Spelling, states: Mapping[str, list[str]], *, colon: str, alone: str
) -> Iterator[str]:
    """The blocks of a network, `states` as they name rows; `alone` stands before the one row of a variable without parents."""
    for name, table in network.tables.items():
        given = f" | {', '.join(map(word, table.parents))}" if table.parents else ""
        labels = product(*(states[parent] for parent in table.parents))
        heads = [f"({', '.join(label)}){colon}" for label in labels] if table.parents else [alone]
        rows = "".join(f"  {head} {row};\n" for head, row in zip(heads, table.rows(", "), strict=True))
        yield f"probability ( {word(name)}{given} ) {{\n{rows}}}\n"


def head(tokens: Tokens, variables: dict[str, Finite]) -> ProbabilityBlock:
    """What stands before the rows: `probability ( child | parents ) {`."""
    start = tokens.at
    tokens.expect("probability", "(")
    names = [tokens.name("the name of a variable")]
    if tokens.accept("|"):
        at = tokens.at
        names += tokens.names(tokens.until(")"), at, "the name of a parent")
        if len(names) == 1:
            raise tokens.error("a parent is missing after '|'", at)
    elif not tokens.accept(")"):
        raise tokens.unexpected_token("')' or '|' after the one variable that the block defines")
    tokens.expect("{")
    child, *parents = family = [variable_of(variables, name, lambda: tokens.line(start)) for name in names]
    if len(parents) > MAX_PARENTS:
        raise tokens.error(many_parents(family), start)
    return ProbabilityBlock(tokens, start, child, tuple(parents))


def read_rows(block: ProbabilityBlock, codes_of: Codes, *, colon: bool) -> None:
    """All rows that stand here one after another, each `( state, state ) number, number ;`, after DSC's bracket a colon."""
    tokens, words = block.tokens, block.tokens.words
    codes = [codes_of(parent) for parent in block.parents]
    closing = [")", ":"] if colon else [")"]
    skip = 1 + len(codes) + len(closing)
    width = skip + block.child.n_states
    while words[tokens.at] == "(":
        at = tokens.at
        if words[at + 1 + len(codes) : at + skip] != closing:
            tokens.at += 1
            if (n := len(tokens.until(")"))) != len(codes):
                raise tokens.error(f"the row names {n} states for the {len(codes)} parents of {show(block.child.name)}", at)
            raise tokens.unexpected_token("':'" if colon else "')'")
        row = 0
        for k, code in enumerate(codes, start=at + 1):
            found = code.get(words[k])
            row = row * block.parents[k - at - 1].n_states + (_code(block, k - at - 1, code) if found is None else found)
        if words[at + width : at + width + 1] != [";"]:
            tokens.at = at + skip
            raise block.wrong_count(block.read_numbers().size, at)
        if row in block.row_at:
            raise tokens.error(f"variable {show(block.child.name)} has this row twice")
        block.row_at[row] = at
        block.words += words[at + skip : at + width]
        tokens.at = at + width + 1


def _code(block: ProbabilityBlock, k: int, codes: dict[str, int]) -> int:
    """The code of the k-th parent's state, which is not written as usual: with other escapes, or not known at all."""
    at, parent = block.tokens.at + 1 + k, block.parents[k]
    state = block.tokens.unquote(at, f"a state of {show(parent.name)}")
    found = codes.get(quote(state))
    if found is None:
        raise block.tokens.error(f"variable {show(parent.name)} has no state {show(state)}{hint(state, parent.states)}", at)
    return found


class Bif(NetworkFormat):
    """The format of files that end in .bif."""

    word = "bif"
    parse, text = staticmethod(read_bif), staticmethod(write_bif)


class Dsc(NetworkFormat):
    """The format of files that end in .dsc."""

    word = "dsc"
    parse, text = staticmethod(read_dsc), staticmethod(write_dsc)
