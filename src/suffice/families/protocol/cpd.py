"""What every conditional distribution (CPD) can do: one fitted or written-down p(child | parents).

Learners and questions ask it for behaviour (parameters free of bounds, draws of them, ln p and draws of rows, a line, an entropy,
plain values for files), and never for its class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.output.display import Rows, Tabular
from suffice.basis.registry import Named
from suffice.basis.variables import Finite, Variable
from suffice.errors import FitError, ModelError, SufficeError
from suffice.errors.remedies import BDEU, argument, of_python
from suffice.numerics.exponential.arithmetic.values import Interval
from suffice.statistics import Request, Statistics
from suffice.statistics.counts import array_of, checked_cells, flat, n_configurations, sizes

Array = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[Any]]


class Cpd(Named, Tabular):
    """p(child | parents): parameters and the questions they answer.

    The parameters of tables, Gaussians and rates are `arrays` with an axis for each finite parent, in their order; a regression
    has one set of numbers for all states of its parents.
    """

    child: Any
    parent_variables: tuple[Any, ...]
    family: Any
    seen: Any = None
    imagined: Any = None

    listed_in = "cpds"
    children: ClassVar[Any] = Variable
    """What its child is."""
    arrays: ClassVar[tuple[str, ...]] = ()
    positive: ClassVar[tuple[str, ...]] = ()
    """Parameters that are positive: free of bounds are their logarithms."""
    is_regression: ClassVar[bool] = False
    is_line: ClassVar[bool] = False
    """Whether it is a normal one around a line for each configuration: `intercept`, `coefficients` and `variance`."""
    noun: ClassVar[str] = "parameters"
    """What a configuration may be without."""
    kind: ClassVar[str] = ""
    marks_unseen: ClassVar[bool] = False
    """Whether lines of configurations that no row had are marked."""
    _lines = 16

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What only some kinds of distributions have: `probs`, `coefficients`, `variance`, ..."""

        # What each kind says: ln p and draws of rows, what is told of the first configurations, with its header; of a number, its
        # place in inference, the intercept, coefficients and variance of its mean where that is linear, the entropy in each
        # configuration that is held; and the logarithm whose maximiser, with ln L, the estimate is (`log_scale`: of its unit).
        def log_likelihood(self, statistic: Any) -> float: ...
        def log_prob(self, columns: Columns) -> Array: ...
        def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]: ...
        def _numbers(self, limit: int) -> tuple[list[str], list[list[object]]]: ...
        def node(self, number: Mapping[str, int], real_number: Mapping[str, int]) -> Any: ...
        def as_line(self) -> tuple[Array, Array, Array]: ...
        def _entropies(self, held: npt.NDArray[np.bool_]) -> Array: ...
        def log_prior(self, imagined: Any, how: Any, log_scale: float) -> float: ...

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():  # arrays come out of a pickle writeable
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(state)

    @property
    def parents(self) -> tuple[str, ...]:
        """The parents in the order of the graph, which is that of their axes."""
        return tuple(p.name for p in self.parent_variables)

    @property
    def finite_parents(self) -> tuple[Finite, ...]:
        return split(self.parent_variables)[0]

    @property
    def real_parents(self) -> tuple[str, ...]:
        """The parents that are numbers."""
        return tuple(p.name for p in split(self.parent_variables)[1])

    @property
    def n_parameters(self) -> int:
        return int(self.family.n_parameters(self.child, self.parent_variables))

    @property
    def entries(self) -> Mapping[str, int]:
        """The parts that learners may hold fixed one by one, and the number of parameters in each: none, unless it has some."""
        return {}

    @property
    def needs(self) -> Request:
        """The statistic that it is learned from."""
        request: Request = self.family.needs(self.child, self.parent_variables)
        return request

    @property
    def support(self) -> Array | None:
        """For each configuration of the finite parents: how many rows had it, or their weight; None where that was not kept. One
        axis per parent."""
        if self.seen is None:
            return None
        shape = sizes(self.finite_parents)
        return np.asarray(self.seen.at(np.arange(math.prod(shape))).count.reshape(shape))

    @property
    def unsupported(self) -> npt.NDArray[np.bool_]:
        """For each configuration of the finite parents: whether no row of the data had it. One axis per parent."""
        rows = self.support
        return np.zeros(sizes(self.finite_parents), dtype=bool) if rows is None else np.asarray(rows <= 0)

    @property
    def undefined(self) -> npt.NDArray[np.bool_]:
        """For each configuration of the finite parents: whether it has no parameters. One axis per parent."""
        shape = sizes(self.finite_parents)
        values = getattr(self, self.arrays[-1]) if self.arrays else np.zeros(shape)
        return np.asarray(np.isnan(values.reshape(*shape, -1)).any(axis=-1))

    @property
    def is_open(self) -> bool:
        """Whether it is a regression without a formula for sums or integrals over its values, whatever is observed."""
        return False

    def closed_form(self) -> Any:
        """The same distribution as a table, a conditional Gaussian or Poisson rates."""
        return self

    def without(self, values: Mapping[str, float]) -> Cpd:
        """The distribution where some real parents are these numbers, which move into the intercept."""
        return self

    def interval(self, level: float = 0.95) -> Any:
        """The credible intervals of the parameters."""
        raise FitError(f"credible intervals are not known of {self._headline()}")

    def interval_ends(self, level: float = 0.95) -> Interval | None:
        """The low and the high ends of the credible intervals, a row for each configuration of the finite parents and a column
        for each of its numbers; None where no posterior is kept, or none has intervals.

        >>> import suffice as sf
        >>> bn = sf.fit("x", {"x": ["a", "b", "b"]}, prior=sf.Dirichlet(1))
        >>> bn["x"].interval_ends(0.5).lower.round(2), sf.load("asia")["lung"].interval_ends()
        (array([[0.24, 0.46]]), None)
        """
        if not self.has_posterior:
            return None
        try:
            ends, n = self.interval(level), self._n_rows()
        except FitError:
            return None
        named = ends if isinstance(ends, dict) else {"": ends}
        low, high = ([np.asarray(own[k]).reshape(n, -1) for own in named.values()] for k in (0, 1))
        return Interval(np.concatenate(low, axis=1), np.concatenate(high, axis=1))

    def log_likelihood_of_fit(self, statistics: Statistics) -> float:
        """Σ ln p(child | parents) over the rows that it was fitted from, whose statistics these are."""
        return self.log_likelihood(statistics.answer(self.needs))

    def log_prob_at(self, parent: str, state: int, columns: Columns, n: int) -> Array:
        """ln p(child | parents) of n rows in which a finite parent, or the child, has this state."""
        return self.log_prob({**columns, parent: np.full(n, state)})

    def entropy(self, marginal: Callable[[Sequence[str]], Array]) -> float:
        """H(child | parents), of a number that of its density, where `marginal` has the probabilities of finite variables."""
        weights = marginal([p.name for p in self.finite_parents])
        held = weights > 0
        each = self._entropies(held)
        if np.isnan(each).any():
            raise ModelError(f"{self.child.name!r} has no parameters at some configurations of its parents; fit with a prior")
        return float(weights[held] @ each)

    def redraw(self, n: int, rng: np.random.Generator) -> list[Self]:
        """n draws from the posterior of the parameters."""
        drawn = self._draw_parameters(n, rng)
        return [replace(self, seen=None, imagined=None, **{k: x[i] for k, x in drawn.items()}) for i in range(n)]  # type: ignore[type-var]

    def _draw_parameters(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """n draws of each of `arrays`, the first axis."""
        raise no_posterior(self.child)

    def fill_empty(self, mean: float, variance: float) -> Self:
        """The same, with the mean and variance of the child where it has no parameters."""
        return self

    def keep_old(self, old: Self, known: npt.NDArray[np.bool_]) -> Self:
        """The same with the old parameters in configurations that are not `known`, unless a prior gives them some."""
        known = known.reshape(sizes(self.finite_parents)) | (~self.undefined if self.imagined is not None else False)
        kept: dict[str, Array] = {}
        for a in self.arrays:
            x = getattr(self, a)
            kept[a] = np.where(known.reshape(known.shape + (1,) * (x.ndim - known.ndim)), x, getattr(old, a))
        return replace(self, **kept)  # type: ignore[type-var]

    def perturb(self, parent: str, rng: np.random.Generator) -> Self:
        """The same, with the states of a finite parent moved apart a little, at random."""
        return self

    def by_states(self, parent: str) -> list[Array]:
        """What each state of a finite parent, the first axis, says of the child."""
        axis = [p.name for p in self.finite_parents].index(parent)
        return [np.moveaxis(x, axis, 0) for x in self._distinguishing_arrays()]

    def _distinguishing_arrays(self) -> list[Array]:
        """Arrays that tell configurations of the finite parents apart."""
        return [getattr(self, a) for a in self.arrays]

    @property
    def part_names(self) -> tuple[str, ...]:
        """The names of all parameters."""
        return self.arrays

    def free_parts(self) -> list[Array]:
        """The parameters free of bounds; what is zero is not finite there."""
        with np.errstate(divide="ignore"):
            return [np.log(getattr(self, n)) if n in self.positive else np.asarray(getattr(self, n)) for n in self.part_names]

    def with_parts(self, parts: Sequence[Array]) -> Self:
        """The same with other parameters, free of bounds."""
        given = {n: np.exp(p) if n in self.positive else p for n, p in zip(self.part_names, parts, strict=True)}
        if any(not np.isfinite(p).all() for p in given.values()) or np.any(given.get("variance", 1.0) <= 0.0):
            raise FitError(f"the parameters of {self.child.name!r} are beyond what a double holds")
        try:
            return replace(self, **given)  # type: ignore[type-var]
        except ModelError as error:  # led beyond the bounds of a probability
            raise FitError(str(error)) from None

    def like(self, other: Self) -> Self:
        """The parameters of another distribution of the same shape under these names."""
        return replace(self, **{n: getattr(other, n) for n in self.part_names})  # type: ignore[type-var]

    @property
    def has_posterior(self) -> bool:
        """Whether what was seen and imagined of it is known."""
        return self.imagined is not None and self.seen is not None

    def posterior(self) -> Any:
        """What was seen and imagined together."""
        if not self.has_posterior:
            raise no_posterior(self.child)
        return self.seen + self.imagined

    def configuration(self, given: Mapping[str, Any], what: str = "state") -> int:
        """The place of the configuration of the finite parents that is given, if all parents are."""
        for p in self.parents:
            if p not in given:
                raise ModelError(f"the predictive of {self.child.name!r} needs a {what} of its parent {p!r}")
        codes = tuple(v.code(given[v.name]) for v in self.finite_parents)
        return int(np.ravel_multi_index(codes, sizes(self.finite_parents))) if codes else 0

    def reorder(self, parents: Sequence[str]) -> Self:
        """The same distribution with its parents in another order, and without the data it was learned from."""
        before = [v.name for v in self.finite_parents]
        axes = [before.index(p) for p in parents if p in before]
        columns = [self.real_parents.index(p) for p in parents if p not in before]
        variables = tuple(self.parent_variables[self.parents.index(p)] for p in parents)
        own = {a: getattr(self, a) for a in self.arrays}
        turned = {a: np.transpose(x, [*axes, *range(len(axes), x.ndim)]) for a, x in own.items()}
        if "coefficients" in turned:
            turned["coefficients"] = turned["coefficients"][..., columns]
        return replace(self, parent_variables=variables, **turned, seen=None, imagined=None)  # type: ignore[type-var]

    def same(self, other: Self) -> bool:
        """Whether two CPDs of a node are the same numbers, whatever the order of the parents."""
        if type(self) is not type(other) or set(self.parents) != set(other.parents):
            return False
        other = other.reorder(self.parents)
        return all(np.array_equal(getattr(self, a), getattr(other, a), equal_nan=True) for a in self.arrays)

    def to_dict(self) -> dict[str, Any]:
        """The distribution as plain values, for JSON."""
        return {"type": self.types[0], **{k: flat(getattr(self, k)) for k in self.arrays}}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any], child: Any, parents: Sequence[Variable], seen: Any, imagined: Any) -> Cpd:
        """What `to_dict` wrote, with what was seen and imagined of it."""
        own = {"seen": seen, "imagined": imagined}
        return cls(child, tuple(parents), **cls._arrays_of(d, child, parents), **own)  # type: ignore[call-arg]

    @classmethod
    def _arrays_of(cls, d: Mapping[str, Any], child: Any, parents: Sequence[Variable]) -> dict[str, Array]:
        """The arrays that are written there, in their shapes."""
        finite, reals = split(parents)
        states = (child,) if isinstance(child, Finite) else ()
        checked_cells((*finite, *states), f"the table of {child.name!r}")
        last = {"probs": sizes(states), "coefficients": (len(reals),)}
        return {k: array_of(d[k]).reshape(sizes(finite) + last.get(k, ())) for k in cls.arrays}

    def declare(self, name: str) -> Any:
        """The variable of a node that only this declares."""
        return replace(self.child, name=name)

    @classmethod
    def variable_of(cls, d: Mapping[str, Any], variable: Variable) -> Variable:
        """The variable of a node of which `to_dict` wrote this, with the family that was chosen for it."""
        return variable

    def to_frame(self) -> Any:
        """One row for each line of numbers."""
        header, rows = self._rows(self._n_rows())
        return frame({h: [r[i] for r in rows] for i, h in enumerate(header)})

    def _n_rows(self) -> int:
        return n_configurations(self.finite_parents)

    def _rows(self, limit: int) -> tuple[list[str], list[list[object]]]:
        """A line for each configuration of the finite parents: their states, and numbers."""
        finite, (header, numbers) = self.finite_parents, self._numbers(limit)
        rows = [[*states, *own] for states, own in zip(product(*(p.states for p in finite)), numbers, strict=False)]
        header, unseen = [*(p.name for p in finite), *header], self.unsupported.reshape(-1) if self.marks_unseen else np.zeros(0)
        if not unseen.any():
            return header, rows
        return [*header, "rows"], [[*row, "none seen" if unseen[i] else ""] for i, row in enumerate(rows)]

    def plot(self, ax: Any = None) -> Any:
        """The numbers in each configuration of the finite parents, with their 95 % intervals where there are some, by matplotlib;
        configurations that no row had are hollow. Gives the axes."""
        from suffice.basis.pictures.plots import plot_intervals

        limit = min(self._n_rows(), 1000)
        names, rows = self._numbers(limit)
        states = [", ".join(f"{p.name}={s}" for p, s in zip(self.finite_parents, own, strict=True))
                  for own, _ in zip(product(*(p.states for p in self.finite_parents)), rows, strict=False)]  # fmt: skip
        ends = self.interval_ends()
        series = list[Any]()
        for k, name in enumerate(names):
            low, high = (None, None) if ends is None else (end[:limit, k] for end in ends)
            if all(isinstance(row[k], float) for row in rows):
                series.append((name, [row[k] for row in rows], low, high))
        unseen = self.unsupported.reshape(-1)[:limit].tolist()
        return plot_intervals(ax, states or [""], series, x=self._unit, title=self._headline(), hollow=unseen)

    _unit: ClassVar[str] = "value"
    """What the numbers are."""

    def _frame(self, name: str, values: Array, variables: Sequence[Finite]) -> Any:
        """A row for each parameter: its states, its value, whether no row had its configuration, and its 95 % interval."""
        states = zip(*product(*(v.states for v in variables)), strict=True)
        columns: dict[str, Any] = dict(zip((v.name for v in variables), map(list, states), strict=True))
        columns[name] = values.reshape(-1)
        if self.seen is not None:
            columns["unsupported"] = np.repeat(self.unsupported.reshape(-1), values.size // self.unsupported.size)
        if self.imagined is not None:
            columns["lower"], columns["upper"] = (end.reshape(-1) for end in self.interval())
        return frame(columns)

    def _headline(self) -> str:
        given = f" | {', '.join(self.parents)}" if self.parents else ""
        return f"p({self.child.name}{given})" + (f", {kind}" if (kind := self._kind()) else "")

    def _kind(self) -> str:
        return self.kind

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        more = self._n_rows() - limit
        return [self._rows(limit)], f"\n… and {more:,} more rows" if more > 0 else ""


def split(parents: Sequence[Variable]) -> tuple[tuple[Finite, ...], tuple[Variable, ...]]:
    """The finite parents and the others, each in the order of the graph."""
    return tuple(p for p in parents if isinstance(p, Finite)), tuple(p for p in parents if not isinstance(p, Finite))


def flat_index(columns: Columns, parents: Sequence[Finite], n: int) -> npt.NDArray[np.int64]:
    """The row-major index of each row's configuration of `parents`."""
    index = np.zeros(n, dtype=np.int64)
    for parent in parents:
        index *= parent.n_states
        index += columns[parent.name]
    return index


def as_numbers(given: Any, refusal: str, kind: type[SufficeError] = ModelError) -> Array:
    """An array of what is given, if these are numbers."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise kind(refusal) from None


AFTER_EM = "; after EM, em(...).information() has intervals of parameters, and query(..., interval=0.95) of answers"


def no_posterior(child: Variable) -> FitError:
    if isinstance(child, Finite) and child.family is not None:
        return FitError(
            f"{child.name!r} is {child.family!r}, of which no posterior is kept: it has no interval and no predictive"
        )
    return FitError(
        f"{child.name!r} has no posterior, and so no interval and no predictive: it was fitted without a prior, read from a "
        f"file that holds none, or has a parent that do(...) set to a number; fit it with one, for instance {BDEU} or "
        f"{argument('prior', 'NormalInverseGamma()', 'nig')}{of_python(AFTER_EM)}"
    )


def frame(columns: Mapping[str, Any]) -> Any:
    """A data frame of these columns: pandas if it is installed, else pyarrow."""
    try:
        import pandas as pd
    except ImportError:
        import pyarrow as pa

        return pa.table({k: pa.array(list(v)) for k, v in columns.items()})
    return pd.DataFrame(dict(columns))
