"""Statistics: the tables and moments that learners ask for, under their names; and the dense tables among them in one array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import comb
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.basis.output.display import html_table
from suffice.basis.variables import Count, Distributed, Finite, NotNormal, Real, Variable
from suffice.errors import StatisticsError, listing, whole
from suffice.statistics.counts import Counts, Request, RowFormula, common_variable, log_factorials, n_configurations
from suffice.statistics.moments import Moments
from suffice.statistics.suppression import Entry, Lost, Scope, Suppression, agreed_suppression, without_small


class FlatCounts(NamedTuple):
    """Tables one after the other, axes in the order of names; sets of one size are numbered by their members, in that order."""

    names: tuple[str, ...]
    values: Array
    by_size: dict[int, tuple[Ints, Ints]]
    """Of sets of so many variables: their numbers, increasing, and where the table of each begins."""
    whole: bool
    """Whether all counts are whole numbers."""

    @staticmethod
    def of(entries: Iterable[Any], variables: Mapping[str, Any]) -> FlatCounts:
        names = tuple(sorted(n for n, v in variables.items() if isinstance(v, Finite)))
        number, parts, at = {n: i for i, n in enumerate(names)}, list[Array](), 0
        found: dict[int, list[tuple[int, int]]] = {}
        for entry in entries:
            if isinstance(entry, Counts) and entry.keys is None and len(names) ** len(entry.variables) < 2**62:
                table, key = entry.marginal(sorted(entry.names)).values, 0
                for name in sorted(entry.names):
                    key = key * len(names) + number[name]
                found.setdefault(table.ndim, []).append((key, at))
                parts.append(table.reshape(-1))
                at += table.size
        values = np.concatenate([np.zeros(0), *parts])
        places = {size: np.array(sorted(pairs), np.int64).T for size, pairs in found.items()}
        by_size = {size: (np.ascontiguousarray(p[0]), np.ascontiguousarray(p[1])) for size, p in places.items()}
        return FlatCounts(names, values, by_size, bool((values == np.floor(values)).all()))

    def starts(self, sets: npt.NDArray[Any]) -> Ints | None:
        """Where the table of each set, its members increasing, begins; None if some have none."""
        known, begin = self.by_size.get(sets.shape[1], (np.zeros(0, np.int64), np.zeros(0, np.int64)))
        if not len(known) or (sets[:, 1:] <= sets[:, :-1]).any():
            return None
        key = np.zeros(len(sets), np.int64)
        for column in sets.T:
            key = key * len(self.names) + column
        place = np.minimum(np.searchsorted(known, key), len(known) - 1)
        return begin[place] if (known[place] == key).all() else None


SIDES = ("the first", "the second")
"""What two statistics are called that do not add."""


class Statistics:
    """A set of `Counts` and `Moments` gathered from the same rows, which adds to another such set by name.

    `a + b` is what the rows of both would give; `a - b` takes rows away again. Variables, parents and states are matched by
    name; inferred states are united, declared ones must agree.

    >>> x = Finite("x", ["a", "b"])
    >>> s = Statistics([Counts((x,), [3, 1])], weight=4)
    >>> (s + s).counts(["x"]).values
    array([6., 2.])
    """

    __slots__ = ("_entries", "_flat", "_most", "_variables", "suppression", "weight")

    weight: float
    """The weight of all rows together: their number, where there are no weights."""
    suppression: Suppression | None
    """Which small cells were left out (`suppress`), and what each table lost by that; None where all are there."""

    def __init__(
        self, entries: Iterable[Entry], weight: float, variables: Iterable[Variable] = (), suppression: Suppression | None = None
    ) -> None:
        """`variables` has those among the numbers that are not normal, and those of states whose families were chosen: entries do
        not tell them from others."""
        self._entries: dict[tuple[frozenset[str], frozenset[str]], Entry] = {}
        self._variables: dict[str, Variable] = {}
        self.weight = float(weight)
        self.suppression = suppression
        self._flat: FlatCounts | None = None
        self._most: tuple[int | None] | None = None
        for entry in entries:
            request = entry.request
            known = self._entries.get(request.scope)
            if known is None or not set(request.derived) < set(known.request.derived):
                self._entries[request.scope] = entry
            counts = {d.column for d in request.derived if d in log_factorials([d.column])}
            for v in entry.variables:
                if self._variables.setdefault(v.name, v) != v:
                    raise StatisticsError(f"variable {v.name!r} has other states in one table than in another")
            if isinstance(entry, Moments):
                for r in entry.reals:
                    if r in counts and not isinstance(self._variables.get(r), Finite):
                        self._variables[r] = Count(r)
                    self._variables.setdefault(r, Real(r))
        for own in variables:
            mine = self._variables.get(own.name)
            if isinstance(mine, Finite) and isinstance(own, Finite) and own.family is not None:
                self._variables[own.name] = replace(mine, family=own.family)
            elif mine is not None and not isinstance(mine, Finite) and isinstance(own, NotNormal):
                self._variables[own.name] = own

    def __setattr__(self, name: str, value: object) -> None:
        if name[:1] != "_" and hasattr(self, name):  # copies and pickles set it once
            raise AttributeError(f"the {name} of statistics never changes; make others")
        super().__setattr__(name, value)

    def with_variables(self, variables: Iterable[Variable]) -> Statistics:
        """The same statistics, of variables whose families were chosen."""
        return Statistics(self, self.weight, (*self._variables.values(), *variables), self.suppression)

    @property
    def variables(self) -> dict[str, Variable]:
        """The variables that the statistics speak of, by name."""
        return dict(self._variables)

    def suppress(self, min_count: int) -> Statistics:
        """The same with cells of 1 to `min_count` − 1 rows set to 0, and without the moments of so few: to be given away.

        The sum of such statistics has what each lost. `fit` notes it, scores weigh only the cells that are left, and evidence
        refuses it. It is no proof against who compares overlapping tables: see docs/scaling.md.

        >>> s = Statistics([Counts((Finite("x", ["a", "b"]),), [3, 12])], weight=15).suppress(10)
        >>> s.counts(["x"]).values
        array([ 0., 12.])
        >>> s.suppression.in_words()
        'cells of less than 10 rows were left out, and 1 of 1 tables lost some, one at most 9 rows'
        """
        least = whole(min_count, "min_count", 2)
        if self.suppression is not None:
            raise StatisticsError(f"small cells were left out before: {self.suppression.in_words()}")
        smaller = [without_small(entry, least) for entry in self]
        lost = {entry.request.scope: bounds for entry, bounds in smaller}
        return Statistics([entry for entry, _ in smaller], self.weight, self._variables.values(), Suppression(least, lost))

    def require_all_cells(self, what: str) -> None:
        """Refuse statistics without their small cells for what needs them."""
        if self.suppression is not None:
            raise StatisticsError(f"{what} needs all cells, and of these statistics {self.suppression.in_words()}")

    def recoded(self, by: Mapping[str, Finite]) -> Statistics:
        """The same over variables with other (more, or reordered) states."""
        return Statistics([entry.recoded(by) for entry in self], self.weight, self._variables.values(), self.suppression)

    def gather(self, requests: Iterable[Request], *, threads: int | None = None) -> Statistics:
        """These statistics, which are gathered already; a learner that is given them asks for the same as of rows."""
        return self

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(e.request for e in self._entries.values())

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def counts(self, names: Sequence[str]) -> Counts:
        """The table of these variables in this order: gathered as such, or the marginal of a larger one."""
        scope = frozenset(names), frozenset[str]()
        entry = self._entries.get(scope) or self._smallest(*scope)
        if isinstance(entry, Moments):
            entry = Counts(entry.variables, entry.count, entry.keys)
        return entry.marginal(names)

    def moments(self, names: Sequence[str], reals: Sequence[str], derived: Sequence[RowFormula] = ()) -> Moments:
        """The moments of `reals` within each configuration of `names`; where it is there, an entry that has what is derived."""
        entry = self._smallest(frozenset(names), frozenset(reals), frozenset(derived))
        if not isinstance(entry, Moments):
            raise StatisticsError(f"these statistics hold no moments of {listing(reals)}")
        return entry.marginal(names, reals)

    def answer(self, request: Request) -> Entry:
        own = self._entries.get(request.scope)
        if own is not None and own.request == request:
            return own
        if not request.real:
            return self.counts(request.finite)
        entry = self.moments(request.finite, request.real, request.derived)
        return entry.deriving(request.derived) if request.derived else entry

    def marginal(self, names: Iterable[str]) -> Statistics:
        """What these statistics say about some of the variables: each table and moment without the others."""
        kept = set(names)
        for name in sorted(kept - set(self._variables)):
            raise StatisticsError(f"these statistics do not speak of {name!r}")
        smaller: list[Entry] = []
        lost: dict[Scope, Lost] = {}
        for entry in self:
            finite = [n for n in entry.names if n in kept]
            reals = [r for r in entry.request.real if r in kept]
            if reals and isinstance(entry, Moments):
                smaller.append(entry.marginal(finite, reals))
            elif finite and isinstance(entry, Counts):
                smaller.append(entry.marginal(finite))
            else:
                continue
            if self.suppression is not None:
                lost[smaller[-1].request.scope] = self.suppression.of(entry).within(n_configurations(smaller[-1].variables))
        suppression = self.suppression and replace(self.suppression, lost=lost)
        return Statistics(smaller, self.weight, self._variables.values(), suppression)

    @property
    def max_parents(self) -> int | None:
        """Up to how many parents every family can be scored from these statistics; None where some cannot even alone.

        >>> a, b = Finite("a", ["u", "v"]), Finite("b", ["u", "v"])
        >>> Statistics([Counts((a,), [1, 1]), Counts((b,), [2, 0])], 2).max_parents
        0
        """
        if self._most is not None:  # statistics never change
            return self._most[0]
        finite = sum(isinstance(v, Finite) for v in self._variables.values())
        numbers = frozenset(n for n, v in self._variables.items() if not isinstance(v, Finite))
        everything = len(self._variables) - 1
        tables = _largest_level(finite, [len(s[0]) for s in self._entries if not s[1]]) if finite else 0
        most = [] if tables is None else [everything if tables == finite else tables - 1]
        if numbers:
            groups = _largest_level(finite, [len(s[0]) for s in self._entries if s[1] == numbers])
            most += [] if groups is None else [everything if groups == finite else groups]
        self._most = (min(most) if len(most) == 1 + bool(numbers) else None,)
        return self._most[0]

    @property
    def flat(self) -> FlatCounts:
        """All dense tables in one array."""
        if self._flat is None:
            self._flat = FlatCounts.of(self, self._variables)
        return self._flat

    def decay(self, factor: float, steps: float = 1.0) -> Statistics:
        """The same, weighing `factor` as much, or that to the power of some steps: so that older rows fade as new ones are added.

        `statistics.decay(0.99) + new` after each batch of rows, or `statistics.decay(0.99, days) + new` after some days. Rows
        that came k steps ago then weigh 0.99ᵏ; without end, the weight tends to 1 / (1 − 0.99) batches.

        >>> s = Statistics([Counts((Finite("x", ["a", "b"]),), [3, 1])], weight=4)
        >>> (s.decay(0.5) + s).counts(["x"]).values
        array([4.5, 1.5])
        """
        share = checked_decay(factor)
        if isinstance(steps, bool) or not isinstance(steps, (int, float)) or not 0.0 <= steps < np.inf:
            raise StatisticsError(f"the steps of a decay are a number of at least 0, not {steps!r}")
        share **= float(steps)
        suppression = self.suppression and self.suppression.weighing(share)
        return Statistics((entry.weighing(share) for entry in self), share * self.weight, self._variables.values(), suppression)

    def __add__(self, other: Statistics) -> Statistics:
        return self._combine(other, 1)

    def __radd__(self, other: object) -> Statistics:
        """So that `sum(parts)` works."""
        return self if other == 0 else NotImplemented

    def __sub__(self, other: Statistics) -> Statistics:
        for statistics in (self, other):
            if isinstance(statistics, Statistics):
                statistics.require_all_cells("taking statistics away")
        return self._combine(other, -1)

    def plus(self, other: Statistics, sides: tuple[str, str]) -> Statistics:
        """The sum; an error calls the two by these names."""
        return self._combine(other, 1, sides)

    def __eq__(self, other: object) -> bool:
        """The same entries of as many rows, whatever the order of the axes."""
        if not isinstance(other, Statistics) or self.weight != other.weight or set(self._entries) != set(other._entries):
            return False
        if self.suppression != other.suppression:
            return False
        return all(entry == other.answer(entry.request) for entry in self)

    __hash__ = None  # type: ignore[assignment]

    def _combine(self, other: Statistics, sign: int, sides: tuple[str, str] = SIDES) -> Statistics:
        if not isinstance(other, Statistics):
            raise StatisticsError(f"statistics add to statistics, not to {type(other).__name__}")
        agreed_suppression(self.suppression, other.suppression, sides)
        by: dict[str, Finite] = {}
        for name, variable in self._variables.items():
            theirs = other._variables.get(name, variable)
            if isinstance(variable, Finite) and isinstance(theirs, Finite):
                by[name] = common_variable(variable, theirs, sides)
            elif variable != theirs and not isinstance(variable, Distributed) and not isinstance(theirs, Distributed):
                raise StatisticsError(f"variable {name!r} is {variable!r} in {sides[0]} and {theirs!r} in {sides[1]}")
        self._same_scopes(other, sides)
        entries: list[Entry] = []
        for mine in self:
            a: Any = mine.recoded(by)
            b: Any = other.answer(mine.request).recoded(by)
            entries.append(a + b if sign > 0 else a - b)
        weight = self.weight + sign * other.weight
        if weight < -1e-9 * max(1.0, self.weight):
            raise StatisticsError(f"taking a weight of {other.weight:g} from {self.weight:g} leaves less than nothing")
        ours, others = self.suppression, other.suppression
        variables = (*other._variables.values(), *self._variables.values())
        return Statistics(entries, max(weight, 0.0), variables, ours and others and ours.plus(others, entries))

    def _same_scopes(self, other: Statistics, sides: tuple[str, str]) -> None:
        if differing := set(self._entries) ^ set(other._entries):
            scope = min(differing, key=lambda s: (sorted(s[0]), sorted(s[1])))
            here, there = sides if scope in self._entries else sides[::-1]
            what = "the moments" if scope[1] else "the table"
            raise StatisticsError(
                f"{here} has {what} of {listing(sorted(scope[0] | scope[1]))}, and {there} does not; gather both for the same "
                "graph, or for as many parents"
            )

    def _smallest(self, finite: frozenset[str], reals: frozenset[str], derived: frozenset[RowFormula] = frozenset()) -> Entry:
        """The entry about these variables, or the smallest whose marginal is; rather one that has what is derived from them."""
        own = self._entries.get((finite, reals))
        if own is not None and derived <= set(own.request.derived):
            return own
        larger = [e for s, e in self._entries.items() if finite <= s[0] and reals <= s[1] and (bool(s[1]) or not reals)]
        if not larger:
            most = self.max_parents
            of_sets = "" if most is None else f", only of any {most + 1} variables, as for searches with up to {most} parents"
            asked = listing(sorted(finite | reals))
            raise StatisticsError(f"these statistics do not say how {asked} go together{of_sets}; gather them for this graph")
        larger = [e for e in larger if derived <= set(e.request.derived)] or ([own] if own is not None else larger)
        lost = self.suppression
        if lost is None:
            return min(larger, key=lambda e: (bool(e.request.real), n_configurations(e.variables), e.names))
        return min(larger, key=lambda e: (lost.of(e).most_weight, n_configurations(e.variables), e.names))

    def save(self, path: str | PathLike[str]) -> None:
        """Write to a file; `docs/statistics_file.md` says what is in it."""
        from suffice.statistics.file import Contents, StatisticsParts

        Contents.of(StatisticsParts(tuple(self), self.weight, self._variables.values(), self.suppression)).write(path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Statistics:
        """Read what `save` wrote. Nothing is unpickled, and sizes are checked before memory is taken."""
        from suffice.statistics.file import Contents, reading

        contents = Contents.read(path)
        with reading(path):
            return Statistics(*contents.parts())

    def _repr_html_(self) -> str:
        rows = [[", ".join(e.names), ", ".join(e.request.real), e.total] for e in list(self)[:40]]
        return html_table(["finite", "real", "total"], rows, caption=f"Statistics of {self.weight:,.10g} rows")

    def __repr__(self) -> str:
        n_cells = sum(e.values.size if isinstance(e, Counts) else e.scatter.size for e in self)
        lines = [
            f"Statistics of {self.weight:,.10g} rows: {len(self)} entries, {len(self._variables)} variables, {n_cells:,} numbers"
        ]
        lines += [] if self.suppression is None else [f"  {self.suppression.in_words()}"]
        lines += [f"  {entry!r}" for entry in list(self)[:8]]
        return "\n".join(lines + ([f"  … and {len(self) - 8} more"] if len(self) > 8 else []))


def checked_decay(factor: object) -> float:
    """The share of its weight that a row keeps."""
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0.0 < factor <= 1.0:
        raise StatisticsError(f"decay is the share of its weight that a row keeps, above 0 and at most 1, not {factor!r}")
    return float(factor)


def _largest_level(n: int, sizes: Sequence[int]) -> int | None:
    """The largest number of variables, of n, of which every set is there: there are as many sets of that size as there can be."""
    return max((size for size in set(sizes) if sizes.count(size) == comb(n, size)), default=None)
