"""What BIF and DSC share: `discrete [ 2 ] { yes, no }` and the block `probability ( child | parent, parent ) { rows }`.

Rows name the states (BIF) or their numbers (DSC) of the parents in brackets, or are the `default` of the rows not named, or
are one list of all numbers. They are read at their known widths, whole slices at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from suffice.errors import FormatError
from suffice.formats.grammar.finite_network import (
    MAX_PARENTS,
    Definition,
    FiniteNetwork,
    Numbers,
    Rows,
    many_parents,
    variable_of,
)
from suffice.formats.grammar.tokens import Array, Spelling, Tokens, hint, quote, show
from suffice.variables import Finite

Codes = Callable[[Finite], dict[str, int]]
"""The codes of a variable's states, by how they may be written."""


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
            return Definition(
                self.child.name, names, Numbers(self.everything, child_first), lambda _: self.tokens.line(self.start)
            )
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
