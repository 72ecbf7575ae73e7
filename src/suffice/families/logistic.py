"""Logistic regression: p(y = k | x) = exp ηₖ / Σⱼ exp ηⱼ for a finite child y of K states, η₀ = 0 and ηₖ = aₖ + bₖ·x.

The columns x are the numbers of the real parents and, of each finite parent, an indicator of every state but its first; there
are no interactions. The first state of the child is the reference, so that (K − 1)(1 + p) parameters say all.

There is no sufficient statistic of rows with numbers in them: the family is iterative. With θ = (a, b), X = (1, x − c) for a
centre c that keeps the digits, and row weights w, a pass over the rows sums

    log-likelihood  Σ w ln p(y | x)
    gradient        G = Σ w (1[y = k] − pₖ) X
    scatter         S = Σ w X Xᵀ                         (K = 2: Σ w c(η) X Xᵀ, c(η) = 2 tanh(η/2)/η ≤ 1)
    counts          Σ w 1[y = k]
    powers          Σ X¹⁶, whose root is at least max |X|
    hessian         H = Σ w pₖ (1[k = l] − pₗ) X Xᵀ      (where it is small)

from which two steps are known that never lower the log-likelihood; the one that promises more is taken.

    bound           E ⊗ ½S is nowhere less than H, with E = I − 11ᵀ/K and E⁻¹ = I + 11ᵀ: solve it against G
                    (Böhning & Lindsay 1988, Annals of the Institute of Statistical Mathematics 40, p. 641; for K = 2 the sharper
                    bound of Jaakkola & Jordan 2000, Statistics and Computing 10, p. 25)
    damped Newton   d = H⁻¹ G. Along d the third derivative is at most M times the second, M the widest range over the states of
                    a row's change of η; so t = ln(1 + M)/M of d gains at least G·d (t − (M − ln(1 + M))/M²)
                    (the self-concordance of Bach 2010, Electronic Journal of Statistics 4, p. 384)

With `ridge` λ the objective is Σ w ln p − ½ λ tr(E b P bᵀ), P = 1 for a number and I − 11ᵀ/r among the indicators of r states:
half λ times the squares of the effects, each set of effects taken to sum to 0, so that no state is special.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.display import html_table, text_table
from suffice.engines.data import Data, added
from suffice.errors import DataError, FitError, ModelError, TooLarge, bytes_in_words, listed
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import split
from suffice.families.family import Array, Columns, Estimate, Interval, frame
from suffice.families.regression import COLLINEAR, too_large
from suffice.statistics import Request
from suffice.statistics.configurations import checked_cells, frozen, sizes
from suffice.variables import Finite, Variable

MAX_PARAMETERS = 4096
"""No regression has more parameters than this: its Hessian is 128 MiB."""

CELLS = 2**20
"""Numbers of the design that are held at once: 8 MiB."""

SMALL = 256
"""Up to so many parameters a step asks for the Hessian unasked: it is worth its sums."""

POWER = 16
"""The power whose sum bounds the largest number of a column: for a million rows it is at most 2.4 times too high."""

CONVERGED = 1e-9
"""A step that moves no effect by more than this, in standard deviations of its column, ends the iterations."""

STALLED = 10
"""So many steps that gain nothing and still move the coefficients are a way to infinity."""


class Working(NamedTuple):
    """What one pass over rows says about some parameters; it adds. The Hessian may be empty."""

    log_likelihood: float
    gradient: Array
    scatter: Array
    counts: Array
    powers: Array
    hessian: Array


@dataclass(frozen=True)
class Logistic:
    """The family of logistic regressions of a finite node: of two states, or multinomial. `ridge` shrinks the coefficients.

    >>> from suffice.variables import Real
    >>> family, y, x = Logistic(), Finite("y", ["no", "yes"]), Real("x")
    >>> cpd = family.start(y, [x])
    >>> rows = {"y": np.array([0, 1, 0, 1]), "x": np.array([1.0, 2.0, 3.0, 4.0])}
    >>> for _ in range(100):
    ...     cpd = family.advance(cpd, family.step(cpd, rows, None))
    >>> cpd.coefficients.round(4)
    array([[0.9082]])
    """

    ridge: float = 0.0
    iterative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (isinstance(self.ridge, (int, float)) and 0.0 <= self.ridge < np.inf):
            raise FitError(f"the ridge of Logistic must be a number from 0 up, not {self.ridge!r}")

    def needs(self, child: Variable, parents: Sequence[Variable]) -> Request:
        """Counts of the child: what statistics can say before the rows are passed over."""
        return Request((child.name,))

    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int:
        return (_finite(child).n_states - 1) * (1 + len(terms(parents)))

    def start(self, child: Variable, parents: Sequence[Variable]) -> LogisticCpd:
        """No effects: every state as probable as the others."""
        K, p = _finite(child).n_states, len(terms(parents))
        m = (K - 1) * (1 + p)
        if m > MAX_PARAMETERS:
            raise TooLarge(
                f"the logistic regression of {child.name!r} on {listed([v.name for v in parents])} would have {m:,} parameters, "
                f"a Hessian of {bytes_in_words(8.0 * m * m)}; the limit is {MAX_PARAMETERS:,} parameters"
            )
        return LogisticCpd(_finite(child), tuple(parents), np.zeros(K - 1), np.zeros((K - 1, p)), ridge=self.ridge)

    def random(self, child: Variable, parents: Sequence[Variable], rng: np.random.Generator) -> LogisticCpd:
        """Standard normal intercepts and effects of states, no effects of numbers (whose scale is not known): a start where
        some of the variables are hidden and equal effects would stay equal."""
        cpd = self.start(child, parents)
        effects = rng.standard_normal(cpd.coefficients.shape)
        effects[:, _numbers(parents)] = 0.0
        return replace(cpd, intercept=rng.standard_normal(cpd.intercept.shape), coefficients=effects)

    def step(
        self, cpd: LogisticCpd, columns: Columns, weights: npt.NDArray[Any] | None = None, *, newton: bool | None = None
    ) -> Working:
        """The sums of one pass over these rows, at the parameters of `cpd`; whether with the Hessian goes by its size."""
        n, q, m = len(columns[cpd.child.name]), 1 + len(cpd.terms), cpd.n_parameters
        curved = m <= SMALL if newton is None else newton
        K, sides = cpd.child.n_states, m if curved else 0
        total = Working(0.0, np.zeros((K - 1, q)), np.zeros((q, q)), np.zeros(K), np.zeros(q), np.zeros((sides, sides)))
        for start in range(0, n, block := max(1, CELLS // (q + K))):
            part = {v.name: columns[v.name][start : start + block] for v in (cpd.child, *cpd.parent_variables)}
            w = None if weights is None else np.asarray(weights[start : start + block], dtype=np.float64)
            total = added(total, _sums(cpd, part, w, curved))
        return total

    def advance(self, cpd: LogisticCpd, statistic: tuple[Any, ...]) -> LogisticCpd:
        """The parameters after one step that does not lower Σ w ln p (less the ridge). A column that the rows cannot tell
        from those before it stays where it is."""
        s = Working(*statistic)
        kept = _independent(self._half(cpd, s), cpd)
        moved, gain = self._bounded(cpd, s, kept)
        further, more = self._damped(cpd, s, kept) if s.hessian.size else (moved, gain)
        return _moved(cpd, further if more > gain else moved, s.scatter)

    def newton(self, cpd: LogisticCpd, statistic: tuple[Any, ...], fraction: float = 1.0) -> LogisticCpd:
        """The parameters after a Newton step, or part of one. It may overshoot: compare the objective there with that here."""
        s = Working(*statistic)
        return _moved(cpd, fraction * self._direction(cpd, s, np.arange(len(s.scatter)))[0], s.scatter)

    def _bounded(self, cpd: LogisticCpd, s: Working, kept: npt.NDArray[np.intp]) -> tuple[Array, float]:
        """The step to the top of the bound, and what it gains at least."""
        G, moved = self._gradient(cpd, s), np.zeros_like(s.gradient)
        moved[:, kept] = _solved(self._half(cpd, s)[np.ix_(kept, kept)], (G + G.sum(axis=0))[:, kept].T).T
        return moved, 0.5 * float(np.sum(G * moved))

    def _damped(self, cpd: LogisticCpd, s: Working, kept: npt.NDArray[np.intp]) -> tuple[Array, float]:
        """As much of the Newton step as is safe, and what it gains at least: nothing where its digits are in doubt."""
        try:
            d, error = self._direction(cpd, s, kept)
        except np.linalg.LinAlgError:
            return np.zeros_like(s.gradient), -np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            M, slope = _widest(cpd, s, d), float(np.sum(self._gradient(cpd, s) * d))
        if not (np.isfinite(M) and M > 0 and slope > 0 and error < 1e-6):
            return np.zeros_like(d), -np.inf
        t = np.log1p(M) / M
        return t * d, slope * (t - (1.0 - t) / M)

    def _direction(self, cpd: LogisticCpd, s: Working, kept: npt.NDArray[np.intp]) -> tuple[Array, float]:
        """H⁻¹ G in the columns that are kept, and the relative error of that as a solution."""
        H = s.hessian + self.ridge * np.kron(_contrasts(cpd.child.n_states), _shrunk(cpd))
        d, G = np.zeros(len(H)), self._gradient(cpd, s).reshape(-1)
        used = (len(s.scatter) * np.arange(len(s.gradient))[:, None] + kept).reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):  # where every row is sure, H is next to nothing
            d[used] = _solved(H[np.ix_(used, used)], G[used])
            scale = np.sqrt(np.diag(H)[used])
            error, size = (float(np.linalg.norm(v[used] / scale)) for v in (H @ d - G, G))
        return d.reshape(s.gradient.shape), error / size if size else 0.0

    def _half(self, cpd: LogisticCpd, s: Working) -> Array:
        return np.asarray(0.5 * s.scatter + self.ridge * _shrunk(cpd))

    def log_prior(self, cpd: LogisticCpd) -> float:
        """−½ λ tr(E b P bᵀ): what the ridge adds to the objective."""
        b, E, P = cpd.coefficients, _contrasts(cpd.child.n_states), _shrunk(cpd)[1:, 1:]
        return -0.5 * self.ridge * float(np.sum((E @ b @ P) * b)) if self.ridge else 0.0

    def _gradient(self, cpd: LogisticCpd, s: Working) -> Array:
        b = np.concatenate([np.zeros((len(cpd.intercept), 1)), cpd.coefficients], axis=1)
        return np.asarray(s.gradient - self.ridge * _contrasts(cpd.child.n_states) @ b @ _shrunk(cpd))

    def log_likelihood(self, child: Variable, seen: Any) -> float:
        raise needs_rows(child)

    def log_evidence(self, child: Variable, seen: Any, imagined: Any) -> float:
        raise needs_rows(child)

    def estimate(self, child: Variable, parents: Sequence[Variable], seen: Any, imagined: Any, how: Estimate) -> LogisticCpd:
        raise needs_rows(child)


@dataclass(frozen=True, eq=False)
class LogisticCpd:
    """p(child | parents) by the log-odds of each state against the first: intercept[k] + coefficients[k]·x for state k + 1.

    The columns of the coefficients are `terms`: a number per real parent, an indicator per state but the first of a finite one,
    in the order of the parents. `centre` is where sums over rows are taken from; it changes no probability.

    >>> from suffice.variables import Real
    >>> LogisticCpd(Finite("y", ["no", "yes"]), (Real("x"), Finite("z", ["a", "b"])), [0.5], [[2.0, -1.0]])
    p(y | x, z), logistic, against y=no
    y    intercept  x  z=b
    ───  ─────────  ─  ───
    yes  0.5        2  -1
    """

    child: Finite
    parent_variables: tuple[Variable, ...]
    intercept: Array
    coefficients: Array
    centre: Array = field(default_factory=lambda: np.zeros(0))
    ridge: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "parent_variables", tuple(self.parent_variables))
        K, p = _finite(self.child).n_states, len(self.terms)
        shapes = {"intercept": (K - 1,), "coefficients": (K - 1, p), "centre": (p,)}
        for name, shape in shapes.items():
            array = np.array(getattr(self, name), dtype=np.float64)
            if name == "centre" and not array.size:
                array = np.zeros(shape)
            if array.shape != shape:
                raise ModelError(f"the {name} of {self.child.name!r} needs the shape {shape}, not {array.shape}")
            if not np.isfinite(array).all():
                raise ModelError(f"the {name} of {self.child.name!r} must be finite numbers")
            object.__setattr__(self, name, frozen(array))

    @property
    def parents(self) -> tuple[str, ...]:
        """The parents in the order of the graph."""
        return tuple(p.name for p in self.parent_variables)

    @property
    def finite_parents(self) -> tuple[Finite, ...]:
        return split(self.parent_variables)[0]

    @property
    def real_parents(self) -> tuple[str, ...]:
        return tuple(p.name for p in split(self.parent_variables)[1])

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the columns of the coefficients: `x` of a real parent, `z=b` of a state of a finite one."""
        return terms(self.parent_variables)

    @property
    def family(self) -> Logistic:
        return Logistic(self.ridge)

    @property
    def n_parameters(self) -> int:
        return self.intercept.size + self.coefficients.size

    @property
    def seen(self) -> None:
        return None

    @property
    def imagined(self) -> None:
        return None

    @property
    def unsupported(self) -> npt.NDArray[np.bool_]:
        """Never: one set of coefficients speaks for every configuration of the finite parents."""
        return np.zeros(sizes(self.finite_parents), dtype=bool)

    def interval(self, level: float = 0.95) -> Interval:
        raise FitError(
            f"{self.child.name!r} is a logistic regression without a posterior, and so without credible intervals; those of its "
            "information matrix are yet to come"
        )

    def log_likelihood(self, statistic: Any) -> float:
        raise needs_rows(self.child)

    def probs_of(self, columns: Columns) -> Array:
        """p(child | parents) of each row: one row per row, one column per state."""
        n = len(columns[self.parents[0]]) if self.parents else len(next(iter(columns.values())))
        return np.exp(self._log_probs(columns, n)).T

    def log_prob(self, columns: Columns) -> Array:
        child = _codes(columns, self.child)
        return np.asarray(self._log_probs(columns, len(child))[child, np.arange(len(child))])

    def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]:
        """Codes of the child for n rows whose parents are in `columns`."""
        ends = np.cumsum(np.exp(self._log_probs(columns, n)), axis=0)
        return np.asarray((rng.random(n) * ends[-1] >= ends[:-1]).sum(axis=0), dtype=np.int32)

    def table(self) -> Table:
        """The same distribution as a table, if no parent is a number."""
        if self.real_parents:
            raise ModelError(
                f"{self.child.name!r} has the real parent {self.real_parents[0]!r}, and no table of its probabilities"
            )
        finite = self.finite_parents
        n = checked_cells((*finite, self.child), f"the table of {self.child.name!r}") // self.child.n_states
        codes = np.unravel_index(np.arange(n), sizes(finite)) if finite else ()
        probs = np.exp(self._log_probs({v.name: c for v, c in zip(finite, codes, strict=True)}, n)).T
        return Table(self.child, finite, probs.reshape(*sizes(finite), self.child.n_states))

    def columns_of(self, parent: str) -> slice:
        """Where the coefficients of a parent are."""
        before = self.parent_variables[: self.parents.index(parent)]
        start = len(terms(before))
        return slice(start, start + len(terms(self.parent_variables[len(before) : len(before) + 1])))

    def effects(self, parent: str) -> Array:
        """The log-odds that each state of a finite parent adds (the first axis), those of its first state being 0."""
        own = self.coefficients[:, self.columns_of(parent)].T
        return np.concatenate([np.zeros((1, own.shape[1])), own])

    def arranged(self, parents: Sequence[str]) -> LogisticCpd:
        """The same distribution, the parents in another order or some of them left out."""
        columns = [j for p in parents for j in range(len(self.terms))[self.columns_of(p)]]
        variables = tuple(self.parent_variables[self.parents.index(p)] for p in parents)
        return replace(self, parent_variables=variables, coefficients=self.coefficients[:, columns], centre=self.centre[columns])

    def without(self, values: Mapping[str, float]) -> LogisticCpd:
        """The distribution where some real parents are these numbers, which move into the intercept."""
        intercept = self.intercept + sum(self.coefficients[:, self.columns_of(p)][:, 0] * x for p, x in values.items())
        return replace(self, intercept=intercept).arranged([p for p in self.parents if p not in values])

    def to_frame(self) -> Any:
        """One row per state but the first: its intercept and a column per coefficient."""
        header, rows = self._rows()
        return frame({h: [r[i] for r in rows] for i, h in enumerate(header)})

    def _log_probs(self, columns: Columns, n: int) -> Array:
        """ln p of each state (the first axis) in each row."""
        parts = []
        for start in range(0, n, block := max(1, CELLS // (1 + len(self.terms) + self.child.n_states))):
            part = {p: columns[p][start : start + block] for p in self.parents}
            parts.append(_softmax(self, _design(self, part, min(block, n - start)))[0])
        return np.concatenate(parts, axis=1) if parts else np.zeros((self.child.n_states, 0))

    def _rows(self) -> tuple[list[str], list[list[object]]]:
        header = [self.child.name, "intercept", *self.terms]
        numbers = np.concatenate([self.intercept[:, None], self.coefficients], axis=1).tolist()
        return header, [[state, *row] for state, row in zip(self.child.states[1:], numbers, strict=True)]

    def _title(self) -> str:
        given = f" | {', '.join(self.parents)}" if self.parents else ""
        return f"p({self.child.name}{given}), logistic, against {self.child.name}={self.child.states[0]}"

    def __repr__(self) -> str:
        header, rows = self._rows()
        more = len(rows) - 16
        return f"{self._title()}\n{text_table(header, rows[:16])}" + (f"\n… and {more:,} more rows" if more > 0 else "")

    def _repr_html_(self) -> str:
        header, rows = self._rows()
        return html_table(header, rows[:32], caption=self._title())


def fitted(
    child: Variable,
    parents: Sequence[Variable],
    rows: Data,
    *,
    ridge: float = 0.0,
    max_iter: int = 200,
    threads: int | None = None,
) -> LogisticCpd:
    """The logistic regression of `child` on `parents` of largest likelihood (less the ridge), from complete rows.

    >>> from suffice.engines import scan
    >>> data = scan({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "b", "a", "b"]})
    >>> fitted(data.schema["y"], [data.schema["x"]], data).coefficients.round(4)
    array([[0.9082]])
    """
    names = [v.name for v in (child, *parents)]
    rows.require_complete(names)
    family, child = Logistic(ridge), _finite(child)
    chosen = rows.take(names)

    def measure(cpd: LogisticCpd) -> Working:
        return chosen.fold(lambda batch: family.step(cpd, batch.columns, batch.weight, newton=True), threads=threads)

    return maximised(family.start(child, parents), measure, max_iter=max_iter)


def maximised(cpd: LogisticCpd, measure: Callable[[LogisticCpd], Working], *, max_iter: int = 200) -> LogisticCpd:
    """The regression of largest log-likelihood (less the ridge), where `measure` gives the sums over some rows, Hessian included.

    Newton steps, each checked; where one overshoots, half of it and so on, and then the step that cannot. Effects that the rows
    do not tell apart, and effects that grow without end because they separate the states, are refused by name.
    """
    s, stalled = measure(cpd), 0
    _refuse_unseen(cpd, s)
    scale = abs(float(s.log_likelihood))
    cpd, s, _ = _uphill(cpd, s, measure, fractions=())  # which finds the centre of the columns
    _refuse_collinear(cpd, s)
    for _ in range(max_iter):
        before, sums = cpd, s
        cpd, s, newton = _uphill(cpd, s, measure)
        moved = _effects(cpd, before, sums)
        if newton and moved.max() <= CONVERGED:
            return cpd
        was = _objective(before, sums)
        idle = _objective(cpd, s) - was <= 1e-9 * abs(was) or abs(was) <= 1e-9 * scale
        stalled = stalled + 1 if idle and moved.max() > 0.1 else 0
        if stalled >= STALLED:
            raise _separated(cpd, moved)
    raise FitError(
        f"the logistic regression of {cpd.child.name!r} did not converge in {max_iter} iterations; give max_iter, or a ridge"
    )


def _uphill(
    cpd: LogisticCpd, s: Working, measure: Callable[[LogisticCpd], Working], fractions: tuple[float, ...] = (1.0, 0.5, 0.125)
) -> tuple[LogisticCpd, Working, bool]:
    """A better regression, its sums, and whether a whole Newton step led there."""
    here = _objective(cpd, s)
    for fraction in fractions:
        try:
            ahead = cpd.family.newton(cpd, s, fraction)
        except (np.linalg.LinAlgError, ModelError):
            break
        there = measure(ahead)
        if _objective(ahead, there) >= here - 1e-13 * (1.0 + abs(here)):
            return ahead, there, fraction == 1.0
    ahead = cpd.family.advance(cpd, s)
    return ahead, measure(ahead), False


def _objective(cpd: LogisticCpd, s: Working) -> float:
    return float(s.log_likelihood) + cpd.family.log_prior(cpd)


def _effects(a: LogisticCpd, b: LogisticCpd, s: Working) -> Array:
    """By how much each column's effect differs, the largest over the states: of a number, per standard deviation."""
    deviation = np.sqrt(np.maximum(np.diag(s.scatter)[1:] / s.scatter[0, 0], 0.0))
    unit = np.where(_numbers(a.parent_variables), deviation, 1.0)
    levels = [c.intercept + c.coefficients @ a.centre for c in (a, b)]
    change = np.concatenate([(levels[0] - levels[1])[:, None], (a.coefficients - b.coefficients) * unit], axis=1)
    return np.asarray(np.abs(change).max(axis=0))


def _refuse_unseen(cpd: LogisticCpd, s: Working) -> None:
    if not s.counts.sum() > 0:
        raise FitError(f"{cpd.child.name!r} cannot be fitted: there are no rows")
    if np.any(s.counts <= 0):
        state = cpd.child.states[int(np.argmin(s.counts))]
        raise FitError(f"no row has {cpd.child.name}={state}, and its log-odds would be infinite; leave the state out")


def _refuse_collinear(cpd: LogisticCpd, s: Working) -> None:
    kept = set(_independent(cpd.family._half(cpd, s), cpd).tolist())
    for j, ((variable, state), term) in enumerate(zip(_expanded(cpd.parent_variables), cpd.terms, strict=True), start=1):
        if j in kept:
            continue
        if state and not s.scatter[j, j] > 0:
            raise FitError(
                f"{cpd.child.name!r} cannot be fitted: no row has {term}; leave the state out, or use Logistic(ridge=1)"
            )
        before = listed(cpd.terms[: j - 1])
        of = f"a linear combination of {before} or constant" if before else "constant"
        raise FitError(
            f"{cpd.child.name!r} cannot be fitted: the column {term!r} of its parent {variable.name!r} is {of}; leave the parent "
            "out, or use Logistic(ridge=1)"
        )


def _separated(cpd: LogisticCpd, moved: Array) -> FitError:
    columns = [name for name, change in zip(("the intercept", *cpd.terms), moved, strict=True) if change > 0.1 * moved.max()]
    by = [c for c in columns if c != "the intercept"] or columns
    return FitError(
        f"the coefficients of {cpd.child.name!r} grow without end: {listed(by)} separates its states in the data, and there is "
        "no estimate of largest likelihood; leave the parent out, or use Logistic(ridge=1)"
    )


def needs_rows(child: Variable) -> FitError:
    return FitError(
        f"{child.name!r} is a logistic regression, whose likelihood is not a function of counts and moments: it needs the rows"
    )


def terms(parents: Sequence[Variable]) -> tuple[str, ...]:
    """The names of the columns that parents give a regression.

    >>> from suffice.variables import Real
    >>> terms([Real("x"), Finite("z", ["a", "b", "c"])])
    ('x', 'z=b', 'z=c')
    """
    return tuple(v.name if state is None else f"{v.name}={state}" for v, state in _expanded(parents))


def _expanded(parents: Sequence[Variable]) -> Iterator[tuple[Variable, str | None]]:
    """The parent, and its state if it is finite, of each column."""
    for v in parents:
        yield from ((v, s) for s in v.states[1:]) if isinstance(v, Finite) else ((v, None),)


def _numbers(parents: Sequence[Variable]) -> npt.NDArray[np.bool_]:
    """Which of the columns are numbers."""
    return np.array([state is None for _, state in _expanded(parents)], dtype=bool)


def _design(cpd: LogisticCpd, columns: Columns, n: int) -> Array:
    """Xᵀ: a row of ones, then one row per column of the regression."""
    X = np.ones((1 + len(cpd.terms), n))
    j = 1
    for v in cpd.parent_variables:
        if isinstance(v, Finite):
            codes = _codes(columns, v)
            np.equal(codes, np.arange(1, v.n_states)[:, None], out=X[j : j + v.n_states - 1], casting="unsafe")
            j += v.n_states - 1
        else:
            np.subtract(columns[v.name], cpd.centre[j - 1], out=X[j])
            if not np.isfinite(X[j]).all():
                raise DataError(
                    f"{v.name!r} has missing cells, and the logistic regression of {cpd.child.name!r} needs its numbers"
                )
            j += 1
    return X


def _codes(columns: Columns, v: Finite) -> npt.NDArray[np.intp]:
    codes = np.asarray(columns[v.name], dtype=np.intp)
    if codes.size and not 0 <= codes.min() <= codes.max() < v.n_states:
        raise DataError(f"{v.name!r} has missing cells, and a logistic regression needs its states")
    return codes


def _softmax(cpd: LogisticCpd, X: Array) -> tuple[Array, Array, Array]:
    """ln p, p and 1 − p of each state (the first axis) in each row; 1 − p keeps its digits where p is nearly 1."""
    levels = cpd.intercept + cpd.coefficients @ cpd.centre
    eta = np.zeros((cpd.child.n_states, X.shape[1]))
    eta[1:] = np.concatenate([levels[:, None], cpd.coefficients], axis=1) @ X
    top = eta.argmax(axis=0)[None]
    eta -= np.take_along_axis(eta, top, axis=0)
    P = np.exp(eta)
    np.put_along_axis(P, top, 0.0, axis=0)
    others = P.sum(axis=0, keepdims=True)
    np.put_along_axis(P, top, 1.0, axis=0)
    P /= 1.0 + others
    rest = 1.0 - P
    np.put_along_axis(rest, top, others / (1.0 + others), axis=0)
    return eta - np.log1p(others), P, rest


def _sums(cpd: LogisticCpd, columns: Columns, weights: Array | None, curved: bool) -> Working:
    y = _codes(columns, cpd.child)
    w = np.ones(len(y)) if weights is None else weights
    X = _design(cpd, columns, len(y))
    log_p, P, rest = _softmax(cpd, X)
    residual, rows = -P, np.arange(len(y))
    residual[y, rows] = rest[y, rows]
    with np.errstate(over="ignore", invalid="ignore"):  # squares beyond the largest double are refused by name in `advance`
        G = (residual[1:] * w) @ X.T
        S = (X * (w * _curvature(log_p))) @ X.T
        H = _hessian(P, rest, w, X) if curved else np.zeros((0, 0))
        powers = np.square(np.square(np.square(np.square(X)))).sum(axis=1) if curved else np.zeros(len(X))
    return Working(float(w @ log_p[y, rows]), G, S, np.bincount(y, w, len(P)).astype(np.float64), powers, H)


def _curvature(log_p: Array) -> Array | float:
    """c(η) = 2 tanh(η/2)/η of two states; 1 of more, for which no sharper bound of this form is known to us."""
    if len(log_p) > 2:
        return 1.0
    half = np.maximum(np.abs(log_p[1] - log_p[0]) / 2.0, 1e-9)
    return np.asarray(np.tanh(half) / half)


def _hessian(P: Array, rest: Array, w: Array, X: Array) -> Array:
    """Minus the second derivatives, a block for each pair of states but the first."""
    K, q = len(P), len(X)
    H = np.empty(((K - 1) * q, (K - 1) * q))
    for k in range(K - 1):
        for j in range(k + 1):
            block = (X * (w * P[k + 1] * (rest[k + 1] if j == k else -P[j + 1]))) @ X.T
            H[k * q : (k + 1) * q, j * q : (j + 1) * q] = block
            H[j * q : (j + 1) * q, k * q : (k + 1) * q] = block.T
    return H


def _widest(cpd: LogisticCpd, s: Working, d: Array) -> float:
    """At least the widest range, over the states of the child, of the change of η that a step d makes in any row."""
    largest = np.ones(len(s.powers))
    numbers = np.flatnonzero(_numbers(cpd.parent_variables)) + 1
    largest[numbers] = s.powers[numbers] ** (1.0 / POWER)
    if np.any((largest == 0) & (np.diag(s.scatter) > 0)):  # numbers too small for their powers
        return np.inf
    changes = np.concatenate([np.zeros((1, d.shape[1])), d])
    apart = np.abs(changes[:, None] - changes) * largest
    total = apart[..., 0]
    for p in cpd.parents:
        total = total + apart[..., 1:][..., cpd.columns_of(p)].max(axis=-1, initial=0.0)  # a row is in one state only
    return float(total.max())


def _contrasts(K: int) -> Array:
    """E = I − 11ᵀ/K over the states but the first."""
    return np.asarray(np.eye(K - 1) - 1.0 / K)


def _shrunk(cpd: LogisticCpd) -> Array:
    """P, with a zero for the intercept, which no ridge shrinks."""
    P = np.zeros((1 + len(cpd.terms),) * 2)
    for v in cpd.parent_variables:
        own = cpd.columns_of(v.name)
        P[1:, 1:][own, own] = _contrasts(v.n_states) if isinstance(v, Finite) else 1.0
    return P


def _independent(A: Array, cpd: LogisticCpd) -> npt.NDArray[np.intp]:
    """The columns that are no combination of those before them."""
    if not np.isfinite(A).all():
        raise too_large(cpd.child.name)
    scale = np.sqrt(np.where(np.diag(A) > 0, np.diag(A), 1.0))
    R, kept = A / scale[:, None] / scale, []
    for j in range(len(R)):
        if R[j, j] > COLLINEAR:
            kept.append(j)
            R = R - np.outer(R[:, j], R[j]) / R[j, j]
    return np.array(kept, dtype=np.intp)


def _solved(A: Array, b: Array) -> Array:
    """A⁻¹ b for a positive definite A, scaled to unit diagonal."""
    diagonal = np.diag(A)
    if np.any(diagonal <= 0):
        raise np.linalg.LinAlgError("singular")
    scale = np.sqrt(diagonal)
    rows = scale[:, None] if b.ndim == 2 else scale
    return np.asarray(np.linalg.solve(A / scale[:, None] / scale, b / rows) / rows)


def _moved(cpd: LogisticCpd, moved: Array, scatter: Array) -> LogisticCpd:
    """The regression after a step in centred columns, its centre moved to the mean of the numbers."""
    b = cpd.coefficients + moved[:, 1:]
    intercept = cpd.intercept + cpd.coefficients @ cpd.centre + moved[:, 0] - b @ cpd.centre
    mean = scatter[0, 1:] / scatter[0, 0] if scatter[0, 0] > 0 else np.zeros_like(cpd.centre)
    centre = cpd.centre + np.where(_numbers(cpd.parent_variables), mean, 0.0)
    return replace(cpd, intercept=intercept, coefficients=b, centre=centre)


def _finite(v: Variable) -> Finite:
    if not isinstance(v, Finite) or v.n_states < 2:
        raise FitError(f"Logistic is a family of finite nodes of two states or more, and {v.name!r} is {v!r}")
    return v
