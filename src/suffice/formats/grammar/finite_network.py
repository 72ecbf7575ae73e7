"""A finite network as the files hold it, and the one place where what they say is checked.

A reader declares variables and collects definitions; `check_network` checks them all and makes the tables. Nothing is allocated
before the numbers are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from suffice.basis.variables import Finite
from suffice.errors import FormatError, GraphError, SchemaError, TooLarge, bytes_in_words
from suffice.formats.grammar.tokens import Array, hint, show
from suffice.graphs import Dag

MAX_IMPLIED = 2**24
"""The cells that one file may imply without their numbers, by a default row or by the one state of a row: 128 MiB."""

MAX_PARENTS = 31
"""With the child this is as many axes as an array may have."""

TOLERANCE = 1e-4 + 1e-12
"""A row whose sum is further from one is refused; 0.9999 is not."""

ROUNDED = 1e-6 + 1e-12
"""A row whose sum is further from one is named in the note on those that were divided by it."""

TIDY = 1e-12
"""A row whose sum is nearer to one is left as it is, so that what was written is read back bit by bit."""


class NetworkTable(NamedTuple):
    """p(child | parents): axes are the parents in this order, then the child."""

    parents: tuple[str, ...]
    probs: Array

    def rows(self, separator: str = " ") -> list[str]:
        """The numbers as text, one row for each state of the parents, the last parent fastest."""
        return [separator.join(map(repr, row)) for row in self.probs.reshape(-1, self.probs.shape[-1]).tolist()]


@dataclass(frozen=True)
class FiniteNetwork:
    """Variables in their order, a table for each, and what the reader should be told about the file."""

    variables: tuple[Finite, ...]
    tables: dict[str, NetworkTable]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Numbers:
    """All numbers of a table, parents from slow to fast as they are listed, the child fastest; or the child slowest."""

    values: Array
    child_first: bool = False


@dataclass(frozen=True)
class Rows:
    """Some rows by number (parents from slow to fast as they are listed), and what holds for the others."""

    rows: Sequence[int]
    values: Array
    default: Array | None = None


@dataclass(frozen=True)
class States:
    """The one state that the child takes in each row."""

    codes: Sequence[int]


@dataclass(frozen=True)
class Definition:
    """What a file says of p(child | parents); `line` gives the line of a row, or of the whole for None."""

    child: str
    parents: tuple[str, ...]
    content: Numbers | Rows | States
    line: Callable[[int | None], int | None]


@dataclass(frozen=True)
class RowSums:
    """How many rows were divided by their sums, and the worst of them: which it is, and its sum. It adds."""

    n_divided: int = 0
    worst: Callable[[], str] = str
    """Its name, which is looked up only if it is told: the line of a row takes a search through the text."""
    total: float = 1.0

    @property
    def off(self) -> float:
        return abs(self.total - 1.0)

    def __add__(self, other: RowSums) -> RowSums:
        worse = other if other.off > self.off else self
        return RowSums(self.n_divided + other.n_divided, worse.worst, worse.total)


def declare(variables: dict[str, Finite], name: str, states: Iterable[str], line: Callable[[], int | None]) -> None:
    """Add a variable; one that cannot be, or is there already, is refused with its line."""
    try:
        variable = Finite(name, states)
    except SchemaError as error:
        raise FormatError(str(error)[:300], line=line()) from None
    if name in variables:
        raise FormatError(f"variable {show(name)} is declared twice", line=line())
    variables[name] = variable


def variable_of(variables: dict[str, Finite], name: str, line: Callable[[], int | None]) -> Finite:
    """The variable of this name, or an error with its line."""
    if name not in variables:
        raise FormatError(f"there is no variable {show(name)}{hint(name, list(variables))}", line=line())
    return variables[name]


def cells(sizes: Iterable[int]) -> int:
    """The product of the sizes, or of the first of them if that is beyond any memory already."""
    product = 1
    for size in sizes:
        product *= size
        if product > 2**62:
            break
    return product


def check_network(
    variables: dict[str, Finite], definitions: Sequence[Definition], *, weights: bool = False, notes: Sequence[str] = ()
) -> FiniteNetwork:
    """The network that a file describes, checked. With `weights` each row only has to have a sum, which it is divided by."""
    if not variables:
        raise FormatError("the file has no variables, so it is no network")
    sizes = _checked_structure(variables, definitions)
    given = sum(len(d.content.codes) if isinstance(d.content, States) else d.content.values.size for d in definitions)
    if (total := sum(sizes)) - given > MAX_IMPLIED:
        widest = definitions[max(range(len(sizes)), key=sizes.__getitem__)]
        raise TooLarge(
            f"the tables have {total:.3g} cells ({bytes_in_words(8 * total)}) and the file gives numbers for {given}; "
            f"most are of {show(widest.child)}, which has {len(widest.parents)} parents"
        )
    tables: dict[str, NetworkTable] = {}
    sums = RowSums()
    for definition in definitions:
        probs, own = _probabilities(variables, definition, weights)
        tables[definition.child] = NetworkTable(definition.parents, probs)
        sums += own
    if sums.n_divided:
        rows = "1 row was" if sums.n_divided == 1 else f"{sums.n_divided} rows were"
        named = sums.off > ROUNDED and not weights
        worst = f"; the worst is {sums.worst()}, whose numbers sum to {sums.total:.9g}" if named else ""
        notes = [*notes, f"{rows} divided by {'its' if sums.n_divided == 1 else 'their'} sum, which was not exactly 1{worst}"]
    return FiniteNetwork(tuple(variables.values()), {name: tables[name] for name in variables}, tuple(notes))


def many_parents(variables: Sequence[Finite]) -> str:
    """What is said of a variable, the first, that has more parents than can be read: with the size of its table."""
    n = math.prod(v.n_states for v in variables[:64])
    size = f"{n:,} numbers ({bytes_in_words(8.0 * n)})" if len(variables) <= 64 else f"{float(n):.3g} numbers or more"
    told = f"variable {show(variables[0].name)} has {len(variables) - 1} parents, and so {size}"
    return f"{told}; at most {MAX_PARENTS} parents can be read"


def _checked_structure(variables: dict[str, Finite], definitions: Sequence[Definition]) -> list[int]:
    """The number of cells of each table, once every name is known and every number counted."""
    defined: set[str] = set()
    sizes = []
    for definition in definitions:
        child, parents = definition.child, definition.parents
        for name in (child, *parents):
            variable_of(variables, name, partial(definition.line, None))
        fault, size = None, 0
        if child in defined:
            fault = f"variable {show(child)} is defined twice"
        elif len(parents) > MAX_PARENTS:
            fault = many_parents([variables[n] for n in (child, *parents)])
        elif len({child, *parents}) <= len(parents):
            fault = f"the definition of {show(child)} names a variable twice"
        else:
            fault, size = _count_problem(variables, definition)
        if fault:
            raise FormatError(fault, line=definition.line(None))
        defined.add(child)
        sizes.append(size)
    if missing := [name for name in variables if name not in defined]:
        raise FormatError(f"variable {show(missing[0])} has no probabilities")
    try:
        Dag({d.child: list(d.parents) for d in definitions}, nodes=list(variables))
    except GraphError as error:
        raise FormatError(str(error)) from None
    return sizes


def _count_problem(variables: dict[str, Finite], definition: Definition) -> tuple[str | None, int]:
    """What is wrong with the number of numbers, if anything, and the cells of the table."""
    child, content = definition.child, definition.content
    n_states = variables[child].n_states
    n_rows = cells(variables[p].n_states for p in definition.parents)
    size = n_states * n_rows
    if isinstance(content, Numbers) and content.values.size != size:
        wanted = size if size < 1e9 else f"{size:.2g}"
        needed_for = f"its {n_states} states and {len(definition.parents)} parents"
        return f"variable {show(child)} has {content.values.size} numbers; {needed_for} need {wanted}", size
    if isinstance(content, States) and len(content.codes) != n_rows:
        wanted = n_rows if n_rows < 1e9 else f"{n_rows:.2g}"
        return f"variable {show(child)} has {len(content.codes)} resulting states; its parents need {wanted}", size
    if isinstance(content, Rows) and content.default is None and len(content.rows) < n_rows:
        listed = set(content.rows)
        row = next(row for row in range(len(listed) + 1) if row not in listed)
        return f"variable {show(child)} has no probabilities{_configuration(variables, definition, row)}", size
    return None, size


def _probabilities(variables: dict[str, Finite], definition: Definition, weights: bool) -> tuple[Array, RowSums]:
    """The table of a definition that was counted, and which of its rows had to be divided by their sum."""
    content = definition.content
    n_states = variables[definition.child].n_states
    shape = tuple(variables[p].n_states for p in definition.parents)
    n_rows = math.prod(shape)
    sums = RowSums()
    if isinstance(content, States):
        table = np.zeros((n_rows, n_states))
        table[np.arange(n_rows), np.asarray(content.codes, dtype=np.intp)] = 1.0
    elif isinstance(content, Numbers):
        table = content.values.reshape(n_states, n_rows).T if content.child_first else content.values.reshape(n_rows, n_states)
        table, sums = _normalise_table(table, lambda k: _row_named(variables, definition, k), weights)
    else:
        rows = list(content.rows)
        given = content.values.reshape(len(rows), n_states)
        given = given if content.default is None else np.vstack([given, content.default])
        numbers = [*rows, None]  # those of the rows, and none of the one by default
        given, sums = _normalise_table(given, lambda k: _row_named(variables, definition, numbers[k]), weights)
        table = np.empty((n_rows, n_states))
        if len(rows) < n_rows:
            table[:] = given[-1]
        table[np.asarray(rows, dtype=np.intp)] = given[: len(rows)]
    table = np.ascontiguousarray(table).reshape(*shape, n_states)
    table.setflags(write=False)
    return table, sums


def _normalise_table(table: Array, place: Callable[[int], tuple[str, int | None]], weights: bool) -> tuple[Array, RowSums]:
    """Rows of probabilities, checked, those divided by their sum that need it, and which these are."""
    fair = (table >= 0) & (table < np.inf)
    if not fair.all():
        row, k = (int(i) for i in np.argwhere(~fair)[0])
        where, line = place(row)
        value = float(table[row, k])
        kind = "negative" if value < 0 else "not a finite number"
        raise FormatError(f"{where}: the probability {value!r} is {kind}", line=line)
    with np.errstate(over="ignore"):
        sums = table.sum(axis=1)
    off = np.abs(sums - 1.0)
    wrong = ~((sums > 0) & (sums < np.inf)) if weights else off > TOLERANCE
    if wrong.any():
        row = int(np.argmax(wrong))
        where, line = place(row)
        wanted = "which cannot be made 1" if weights else "not to 1"
        raise FormatError(f"{where}: the probabilities sum to {float(sums[row]):.12g}, {wanted}", line=line)
    table = table + 0.0  # a copy of our own; and -0.0 becomes 0.0
    untidy = off > TIDY
    table[untidy] /= sums[untidy, None]
    row = int(np.argmax(off)) if len(off) else 0
    return table, RowSums(int(untidy.sum()), lambda: place(row)[0], float(sums[row])) if untidy.any() else RowSums()


def _row_named(variables: dict[str, Finite], definition: Definition, row: int | None) -> tuple[str, int | None]:
    where = " by default" if row is None else _configuration(variables, definition, row)
    return f"variable {show(definition.child)}{where}", definition.line(row)


def _configuration(variables: dict[str, Finite], definition: Definition, row: int) -> str:
    """The parent configuration of a row, for a sentence."""
    words = []
    for parent in reversed(definition.parents):
        row, code = divmod(row, variables[parent].n_states)
        words.append(f"{parent}={variables[parent].states[code]}")
    shortened = [word if len(word) <= 60 else word[:60] + "…" for word in reversed(words)]
    return f" given {', '.join(shortened[:12])}{', …' if len(shortened) > 12 else ''}" if shortened else ""
