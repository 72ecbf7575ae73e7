"""Data: rows as a learner sees them, through a schema, statistics and folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from suffice.basis.blas import one_blas_thread
from suffice.basis.variables import Finite, NumbersStay, Variable
from suffice.engines.encoding.encode import code_type
from suffice.engines.engine import Block, Each, Engine, S, Seen, Step, T, checked_function
from suffice.engines.gather import Gather
from suffice.engines.local.local import hold_in_memory
from suffice.engines.schema import Schema, Summarise
from suffice.engines.steps.blocks import n_threads
from suffice.engines.views.sample import Collision, Distinct, Sample, SampledRows, Stretches, TakeRows, most_of
from suffice.engines.views.views import BootstrapRows, FoldRows, Indicating, Size, Tally, Viewed
from suffice.errors import DataError, listing, quantity, whole
from suffice.errors.remedies import in_python
from suffice.statistics import Request, Statistics

if TYPE_CHECKING:
    from suffice.basis.argument_types import SeedLike, VariablesLike

MAX_BYTES = 2**31
"""Distinct rows and their weights take no more memory than this, unless another limit is given."""


class UnknownStates(Protocol):
    """What becomes of states that are not declared: `Refuse()` or `Missing()`."""

    @property
    def word(self) -> Literal["refuse", "missing"]: ...


@dataclass(frozen=True)
class KnownColumns:
    """What is known of columns once they were read: rows, weight, missing cells by column, and what there is to note."""

    variables: Mapping[str, Variable]
    n_rows: int
    weight: float
    missing: Mapping[str, int]
    whole_weights: bool = False
    """Whether the rows have weights that are whole numbers: how many equal rows each stands for."""
    notes: tuple[str, ...] = ()


class Data:
    """Rows that are read when they are needed, and never more of them than needed. `scan` makes one.

    Whatever is asked of the rows is asked of their engine, by a step that is folded over them.

    >>> from suffice import scan
    >>> data = scan({"x": ["a", "b", "a"], "y": [1.5, 2.5, None]})
    >>> data.n_rows, data.columns, data.schema["x"], dict(data.missing)
    (3, ('x', 'y'), Finite('x', ['a', 'b']), {'x': 0, 'y': 1})
    >>> data.gather([Request(("x",))]).counts(["x"]).values
    array([2., 1.])
    """

    def __init__(self, engine: Engine, names: Iterable[str]) -> None:
        self.engine = engine
        self.columns = tuple(names)

    @property
    def known(self) -> KnownColumns:
        """All that is known of the columns, once they were read."""
        missing, rows = dict(self.missing), self.engine
        variables = {n: rows.seen[n].variable for n in self.columns}
        return KnownColumns(variables, self.n_rows, self.weight, missing, rows.whole_weights, tuple(rows.notes))

    @property
    def schema(self) -> Schema:
        """What each column is: a mapping from names to variables. What is declared is known without reading; printed, it is a
        report of all rows."""
        return Schema(self.engine.variables(self.columns), look=self._look)

    def _look(self) -> tuple[int, dict[str, Seen], dict[str, Any]]:
        """The number of rows, what was found in each column, and a summary of its values."""
        known = self.known
        if lacking := [n for n in self.columns if n not in self.engine.summaries]:
            sizes = {n: v.n_states if isinstance(v := known.variables[n], Finite) else None for n in lacking}
            found = self.engine.fold(Summarise(sizes), lacking, what="counting values")
            self.engine.summaries = {**self.engine.summaries, **found}
        summaries = self.engine.summaries
        return known.n_rows, {n: self.engine.seen[n] for n in self.columns}, {n: summaries[n] for n in self.columns}

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        if self.engine.n_rows is None:
            self.engine.require(self.columns)
        return self.engine.n_rows or 0

    @property
    def weight(self) -> float:
        """The weight of all rows together: their number, where there are no weights."""
        if self.engine.weight is None:
            self.engine.require(self.columns)
        return self.engine.weight or 0.0

    @property
    def weighted(self) -> bool:
        """Whether the rows have weights."""
        return self.engine.weighted

    @property
    def missing(self) -> Mapping[str, int]:
        """The number of missing cells in each column."""
        self.engine.require(self.columns)
        return MappingProxyType({n: self.engine.seen[n].n_missing for n in self.columns})

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns that have nearly as many states as there are rows."""
        self.engine.require(self.columns)
        seen = self.engine.seen
        return tuple(n for n in self.columns if any(doubt.kind.identifies for doubt in seen[n].doubts))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noted while the columns were read."""
        return tuple(map(in_python, self.known.notes))

    @property
    def whole_weights(self) -> bool:
        """Whether the rows have weights that are whole numbers: how many equal rows each stands for."""
        return self.weighted and self.known.whole_weights

    def select(self, names: Iterable[str]) -> Data:
        """The same rows with only these columns; the others need not even be read."""
        if isinstance(names, str):
            raise DataError(f"columns are a list of names, [{names!r}], not one name")
        chosen = tuple(names)
        self.engine.check(chosen)
        return Data(self.engine, chosen)

    take = select

    def with_variables(self, variables: VariablesLike, unknown: UnknownStates | None = None) -> Data:
        """The same rows, some of their columns declared otherwise; `unknown`: what becomes of states that are not declared."""
        if isinstance(variables, Mapping):
            seen = self.engine.seen  # what columns are known to be is not read anew
            if all(n in seen and (own := seen[n].variable) == v and own.family == v.family for n, v in variables.items()):
                return self
        engine = self.engine.declare(variables)
        return Data(engine if unknown is None else engine.with_unknown(unknown.word), self.columns)

    def as_declared(self) -> Data:
        """The same rows, whose columns are declared to be what they were found to be.

        >>> from suffice import scan
        >>> scan({"dose": [0, 1, 1]}).as_declared().with_numbers(["dose"]).schema["dose"]
        Finite('dose', ['0', '1'])
        """
        return Data(self.engine.declare(dict(self.schema)), self.columns)

    def with_indicators(self, marked: Mapping[str, str]) -> Data:
        """The same rows with a column "no" or "yes" for each name, whether the cell of the column that it marks is missing.

        >>> from suffice import scan
        >>> rows = scan({"x": ["a", None, "b"]}).with_indicators({"x_missing": "x"})
        >>> rows.schema["x_missing"], rows.distinct().columns["x_missing"]
        (Finite('x_missing', ['no', 'yes']), array([0, 1, 0], dtype=uint8))
        """
        return Data(Indicating(self.engine, marked), (*self.columns, *marked))

    def with_numbers(self, names: Iterable[str]) -> Data:
        """The same rows, where numbers in these columns are numbers, however few values they have; what is declared stays.

        >>> from suffice import scan
        >>> scan({"dose": [0, 1, 1]}).with_numbers(["dose"]).schema["dose"]
        Real('dose')
        """
        seen = self.engine.seen
        coded = [n for n in names if n in self.columns and (n not in seen or isinstance(seen[n].variable, Finite))]
        return Data(self.engine.declare(dict.fromkeys(coded, NumbersStay)), self.columns) if coded else self

    @one_blas_thread
    def gather(self, requests: Iterable[Request], *, threads: int | None = None) -> Statistics:
        """The tables and moments asked for, all in one pass over the rows."""
        wanted = tuple(requests)
        names = tuple(dict.fromkeys(n for r in wanted for n in r.names))
        self.engine.check(names)
        variables = self.engine.variables(names)
        workers = n_threads(threads)
        at_once = self.engine.sums_at_once or workers
        step = Gather.plan(wanted, variables, self.engine.n_rows, weighted=self.engine.weighted, at_once=at_once)
        total = self.engine.fold(step, names, threads=workers, what="counting rows")
        return Statistics(step.entries(total), self.weight, variables.values())

    @one_blas_thread
    def fold(self, step: Step[T] | Callable[[Block], T], *, threads: int | None = None, what: str | None = None) -> T:
        """The sum of a step over blocks of rows: arrays, or tuples or dicts of them, or whatever has a plus.

        The blocks are added in a fixed tree, so the sum does not depend on the number of threads. `what` is done is said by a
        bar where it takes long, if it is given.

        >>> from suffice import scan
        >>> data = scan({"y": [1.0, 2.0]})
        >>> float(data.fold(lambda block: block.columns["y"].sum()))
        3.0
        """
        whole = step if isinstance(step, Step) else Each(checked_function(step))
        return self.engine.fold(whole, self.columns, threads=threads, what=what)

    def map(self, step: Callable[[Block], T], *, keep: Iterable[str] = (), what: str = "reading rows") -> Iterator[T]:
        """What a step makes of each block of rows, in their order; `keep` names columns that it gets as they came."""
        kept = tuple(keep)
        self.engine.check([n for n in kept if n not in self.engine.keys])
        return self.engine.map(checked_function(step), self.columns, keep=kept, what=what)

    def walk(self, step: Callable[[S, Block], S], state: S, *, seed: SeedLike | None = None) -> S:
        """What a state becomes block by block, state ← step(state, block): for learners that take rows one after the other.

        The rows come in their order or, with a seed, in a random one, as far as an engine can mix them.

        >>> from suffice import scan
        >>> scan({"y": [1.0, 2.0]}).walk(lambda state, block: state + block.n_rows, 5)
        7
        """
        if not self.engine.ordered:
            raise DataError("these rows have no order to be taken in, one after the other: read them from files, or into memory")
        return self.engine.walk(step, state, self.columns, seed=seed)

    def sample(self, n: int, seed: int = 0) -> SampledRows:
        """n of the rows, drawn without replacement, in their order; all of them if there are no more.

        >>> from suffice import scan
        >>> scan({"x": ["a", "b", "c"]}).sample(2).n_rows
        2
        """
        size = whole(n, "the size of a sample", 0)
        step = Sample(size, whole(seed, "a seed", 0), most_of(size, self.engine.n_rows))
        return self.engine.fold(step, self.columns).rows.in_order()

    def stretches(self, n: int) -> SampledRows:
        """About n of the rows, a stretch of each block: no random sample, but the start of an iteration needs none."""
        return self.engine.fold(Stretches(min(1.0, n / max(1, self.n_rows))), self.columns)

    def distinct(self, limit: int | None = None) -> SampledRows:
        """Each distinct row, in the order of their first places, with the weight of all rows that equal it.

        More of them than `limit` are refused; without one, more than take 2 GiB.

        >>> from suffice import scan
        >>> scan({"x": ["b", "a", "b"]}).distinct().weights
        array([2., 1.])
        """
        most, variables = None if limit is None else whole(limit, "the limit", 1), self.engine.variables(self.columns)
        width = 8 + sum(code_type(v.n_states).itemsize if isinstance(v, Finite) else 8 for v in variables.values())
        for salt in range(100):
            try:
                step = Distinct(MAX_BYTES // width if most is None else most, salt)
                return self.engine.fold(step, self.columns, what="finding distinct rows").rows.in_order()
            except Collision:
                continue
        raise DataError("the rows cannot be told apart")

    def of_rows(self, rows: SampledRows) -> Data:
        """Data of some of the rows, as `sample` or `distinct` gave them, held in memory; what the columns are stays as it is, and
        the place of a row is where it came from."""
        engine, at = self.engine, rows.at  # all that is kept of the sample, whose columns are copied

        def place(row: int) -> str:
            return engine.place(*at[row].tolist())

        return Data(hold_in_memory(self.engine.variables(self.columns), [rows], place=place), self.columns)

    def resample(self, seed: SeedLike) -> Data:
        """A view of a bootstrap sample: as many rows, drawn with replacement, block by block.

        Weights that are whole numbers count equal rows, which are drawn one by one; other weights stay with their rows.

        >>> from suffice import scan
        >>> scan({"x": ["a", "b"]}, weights=[60, 40]).resample(0).weight
        100.0
        """
        view = BootstrapRows.of(self.sizes(), seed, weighted=self.weighted)
        return Data(Viewed(self.engine, view), self.columns)

    def split(self, folds: int, seed: SeedLike) -> Iterator[tuple[Data, Data]]:
        """For each of some folds of the rows, chosen at random: views of the rows outside it and of the rows inside.

        >>> from suffice import scan
        >>> [(train.n_rows, test.n_rows) for train, test in scan({"x": list("abcde")}).split(2, 0)]
        [(2, 3), (3, 2)]
        """
        n = whole(folds, "the number of folds", 2)
        for outside, inside in FoldRows.pairs(self.sizes(), n, seed, weighted=self.weighted):
            yield Data(Viewed(self.engine, outside), self.columns), Data(Viewed(self.engine, inside), self.columns)

    def cells(self, rows: Sequence[int]) -> dict[str, list[str | float | None]]:
        """The cells of some rows, by their numbers from 0: states, numbers, and None where one is missing.

        >>> from suffice import scan
        >>> scan({"x": ["a", "b", None], "y": [1.5, 2.5, 3.5]}).cells([2, 0])
        {'x': [None, 'a'], 'y': [3.5, 1.5]}
        """
        step = TakeRows.of(self.sizes(), rows)
        found = reduce(add, self.map(step))
        return {name: step.cells(found, variable) for name, variable in self.known.variables.items()}

    def sizes(self) -> dict[int, Size]:
        """How many rows each block has, by its number."""
        return self.engine.fold(Tally(), self.columns)

    def hold(self) -> Data:
        """The same rows, encoded once and kept near: for whoever passes over them often."""
        return Data(self.engine.hold(self.columns), self.columns)

    def place(self, number: int, row: int) -> str:
        """Where a row of a block stands, for a person."""
        return self.engine.place(number, row)

    def require_complete(self, names: Iterable[str]) -> None:
        """Refuse missing cells in these columns, with their number in each."""
        self.engine.require_complete(tuple(names))

    def __repr__(self) -> str:
        if not self._read:
            rows = "" if self.engine.n_rows is None else f"{quantity(self.engine.n_rows, 'row')}, "
            return f"Data({rows}{quantity(len(self.columns), 'column')}, not read yet: {listing(self.columns, style='str')})"
        return f"Data({len(self.columns)} {'column' if len(self.columns) == 1 else 'columns'}): {self.schema!r}"

    def _repr_html_(self) -> str:
        return self.schema._repr_html_() if self._read else repr(self)

    @property
    def _read(self) -> bool:
        return set(self.columns) <= set(self.engine.seen)
