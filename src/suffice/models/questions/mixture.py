"""What a network says about numbers: a weighted set of densities, or of draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from suffice.basis.output.display import Rows, and_more, number
from suffice.basis.pictures import Curve, PictureNode
from suffice.basis.variables import Distributed
from suffice.errors import ModelError, checked_level, listing, whole
from suffice.families.protocol.family import Array, Interval, as_numbers, frame
from suffice.models.questions.answers import Answer, Distribution, apart, in_a_line
from suffice.models.questions.densities import Columns, MixtureParts, view_of_shape
from suffice.models.questions.densities import NormalParts as NormalParts
from suffice.models.questions.question import Known, in_words
from suffice.numerics.inference.finite.logs import log_sum
from suffice.numerics.inference.finite.network import Ints

CELLS = 2**22
"""Densities are found in blocks of about this many numbers."""

CURVE = 49
"""Points of a density in a picture."""


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(Answer):
    """p(targets | given) of numbers: Σ weights · p(targets | component), where `parts` has the components: normal or Poisson
    distributions, members of a chosen one, responses of a regression, or draws. What it tells is a number, or of several targets
    an array in their order.

    With finite targets asked for beside them, `finite` is their distribution, `cells` the cell of it that each component is in,
    and `answer["yes"]` the mixture given a state; of a count, `answer[3]` is a probability. `mean_interval` has the ends of a
    credible interval of the mean, where the question asked for one; `error` and `effective_sample_size` say how well draws tell
    the mean; `how` says in words how the answer was found, `asked` all targets in the order of the question.

    >>> answer = Mixture(("x",), [0.25, 0.75], NormalParts([[0.0], [4.0]], [[[1.0]], [[1.0]]]))
    >>> answer.mean, answer.variance, round(answer.cdf(2.0), 6)
    (3.0, 4.0, 0.261375)
    >>> answer
    p(x), exact: mean 3, sd 2
    weight  mean  sd
    ──────  ────  ──
    0.25    0     1
    0.75    4     1
    """

    names: tuple[str, ...]
    weights: Array
    parts: MixtureParts
    finite: Distribution | None = None
    cells: Ints | None = None
    log_prob_of_evidence: float = 0.0
    mean_interval: Interval | None = None
    how: str = "exact"
    given: Mapping[str, object] = field(default_factory=dict)
    asked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = (self.names,) if isinstance(self.names, str) else tuple(self.names)
        object.__setattr__(self, "names", names)
        m = np.shape(self.weights)[0] if np.ndim(self.weights) else 0
        if not (m and names):
            raise ModelError("a mixture needs at least one target and one component")
        object.__setattr__(self, "weights", view_of_shape(self.weights, (m,), "weights"))
        self.parts.check(m, len(names))

    def certain(self) -> Mixture:
        """The same with an interval that has no width: what is observed needs no parameters."""
        return replace(self, mean_interval=Interval(self.mean, self.mean))

    def __len__(self) -> int:
        """The number of components."""
        return len(self.weights)

    @property
    def mean(self) -> Any:
        return self._simple(self.parts.mean(self.weights))

    @property
    def variance(self) -> Any:
        return self._simple(self.parts.variance(self.weights))

    @property
    def sd(self) -> Any:
        """The standard deviation."""
        return self._simple(np.sqrt(np.atleast_1d(self.variance)))

    @property
    def covariance(self) -> Array:
        """That of the targets."""
        return self.parts.covariance(self.weights)

    @property
    def error(self) -> Any:
        """The standard error of the mean of draws; None of what is exact."""
        return None if self.parts.error is None else self._simple(self.parts.error)

    @property
    def effective_sample_size(self) -> float | None:
        """How many independent draws would tell the mean as well, of several targets the smallest; None of what is exact."""
        return self.parts.effective_sample_size

    @property
    def states(self) -> tuple[tuple[str, ...], ...]:
        """The states of the finite targets in each component, if there are any."""
        if self.finite is None or self.cells is None:
            return ()
        digits = np.unravel_index(self.cells, self.finite.probs.shape)
        return tuple(zip(*([v.states[i] for i in d] for v, d in zip(self.finite.variables, digits, strict=True)), strict=True))

    def log_prob(self, x: Any) -> Any:
        """ln of the density, of a count of the probability, at a number or an array of numbers; of several targets, at arrays
        whose last axis are they.

        >>> round(Mixture(("x",), [1.0], NormalParts([[0.0]], [[[1.0]]])).log_prob(0.0), 6)
        -0.918939
        """
        d = len(self.names)
        points = _numbers(x)[..., None] if d == 1 else _numbers(x)
        if points.ndim == 0 or points.shape[-1] != d:
            raise ModelError(f"a point is a number for each of {listing(self.names)}, not an array of shape {points.shape}")
        flat, step = points.reshape(-1, d), max(1, CELLS // (d * len(self)))
        parts = [flat[i : i + step] for i in range(0, max(1, len(flat)), step)]
        with np.errstate(divide="ignore"):
            logs = [self.parts.log_each(part, self.names) + np.log(self.weights) for part in parts]
        total = np.concatenate([log_sum(part, (1,)) for part in logs])
        return total.reshape(points.shape[:-1]) if points.ndim > 1 else float(total[0])

    def density(self, x: Any) -> Any:
        """The density, of a count the probability, at a number or an array of numbers."""
        return np.exp(self.log_prob(x))

    def cdf(self, x: Any) -> Any:
        """P(target ≤ x) of a single target, at a number or an array of numbers."""
        self._check_single("cdf")
        points = _numbers(x)
        flat = np.array([self.parts.tail(self.weights, p, upper=False) for p in points.reshape(-1)])
        return flat.reshape(points.shape) if points.ndim else float(flat[0])

    def quantile(self, q: Any) -> Any:
        """The smallest number that the target does not exceed with a probability of q at least; of several targets that were
        drawn, of each by itself."""
        if not self.parts.are_draws:
            self._check_single("quantile")
        shares = _numbers(q)
        if not ((shares >= 0.0) & (shares <= 1.0)).all():
            raise ModelError(f"a quantile is asked for at a probability from 0 to 1, not at {q!r}")
        found = [self.parts.quantile(self.weights, float(p)) for p in shares.reshape(-1)]
        return np.array(found).reshape(*shares.shape, *np.shape(found[0] if found else 0.0)) if shares.ndim else found[0]

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """The equal-tailed interval that holds a target with this probability, of a count at least."""
        tail = (1.0 - checked_level(level)) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)

    def sample(self, n: int, seed: Any = None) -> Array:
        """n draws: an array, of several targets a line each.

        >>> Mixture(("x",), [0.5, 0.5], NormalParts([[0.0], [4.0]], [[[0.0]], [[0.0]]])).sample(4, seed=0)
        array([4., 0., 0., 0.])
        """
        rng = np.random.default_rng(seed)
        drawn: Array = self.parts.draw(rng.choice(len(self), whole(n, "n", 0), p=self.weights), rng)
        return drawn[:, 0] if len(self.names) == 1 else drawn

    def __getitem__(self, key: Any) -> Any:
        """The mixture given a state of the finite target, or a tuple of states or a mapping where there are several; the
        probability of a count.

        >>> from suffice import Finite
        >>> u, parts = Finite("u", ["no", "yes"]), NormalParts([[0.0], [4.0]], [[[1.0]], [[1.0]]])
        >>> answer = Mixture(("x",), [0.25, 0.75], parts, Distribution((u,), np.array([0.25, 0.75])), np.array([0, 1]))
        >>> answer["yes"].mean, answer.finite["yes"]
        (4.0, 0.75)
        """
        if self.parts.is_count:
            return float(np.exp(self.log_prob(key)))
        if self.finite is None:
            raise ModelError(f"the answer is over {listing(self.names)} alone: no finite target was asked for with it")
        codes = self.finite.codes(key)
        known = {v.name: v.states[c] for v, c in zip(self.finite.variables, codes, strict=True)}
        share = float(self.finite.probs[codes])
        if not share > 0:
            raise ModelError(f"{in_words(known)} has probability zero: {self.parts.none_given}")
        chosen = np.asarray(self.cells == np.ravel_multi_index(codes, self.finite.probs.shape))
        weights, parts = self.parts.restrict(self.weights, chosen)
        given = Known({**self.given, **known}, getattr(self.given, "done", {}))
        log_prob = self.log_prob_of_evidence + float(np.log(share))
        return Mixture(self.names, weights, parts, log_prob_of_evidence=log_prob, how=self.how, given=given)

    def __iter__(self) -> Any:
        raise ModelError(
            f"a {'count' if self.parts.is_count else 'number'} has no last value: ask for single probabilities, answer[0] or "
            "answer.density(0), or for quantiles"
        )

    def plot(self, ax: Any = None) -> Any:
        """The density of a number, of a count its probabilities, from its 0.1 % to its 99.9 % quantile, by matplotlib; gives the
        axes. Several targets are asked for one at a time."""
        self._check_single("plot")
        from suffice.basis.pictures.plots import axes_of, plot_curves

        title = self._headline()
        if self.parts.are_draws:
            ax = axes_of(ax)
            ax.hist(self.sample(10_000, seed=0), bins=50, density=True, color="#5b8db8")
            ax.set_xlabel(self.names[0])
            ax.set_title(title, fontsize="medium")
            return ax
        at, density = self.curve()
        return plot_curves(ax, at, [("all", density)], x=self.names[0], y="density", title=title)

    def curve(self, n: int = 401) -> tuple[Array, Array]:
        """What a plot shows: places from the 0.1 % to the 99.9 % quantile, with some room, and the density there; of a count its
        probabilities. Draws have a histogram instead, n bins of 10,000 of them.

        >>> import suffice as sf
        >>> at, density = sf.load("ecoli70").query("asnA").curve(3)
        >>> at.round(3), density.round(3)
        (array([-2.88 ,  1.994,  6.869]), array([0.001, 0.278, 0.001]))
        """
        self._check_single("curve")
        if self.parts.are_draws:
            height, edges = np.histogram(self.sample(10_000, seed=0), bins=n, density=True)
            return (edges[1:] + edges[:-1]) / 2, height
        low, high = self.interval(0.998)
        room = 0.05 * (high - low) or 1.0
        counts = np.arange(np.floor(low), np.ceil(high) + 1.0) if self.parts.is_count else None
        at = np.linspace(low - room, high + room, n) if counts is None else counts
        return at, np.asarray(self.density(at))

    def _plot_parts(self, ax: Any, parts: Sequence[Mixture], weights: Sequence[float]) -> Any:
        """The weighted densities of classes below what they make together."""
        from suffice.basis.pictures.plots import plot_curves

        (at, density), title = self.curve(), ax.get_title()
        ax.clear()
        own = [(f"class {k}: {w:.3g}", w * part.density(at)) for k, (part, w) in enumerate(zip(parts, weights, strict=True))]
        return plot_curves(ax, at, [("all", density), *own], x=self.names[0], y="density", title=title)

    def _node(self, name: str, before: Mixture | None = None) -> PictureNode:
        both = [self] if before is None else [self, before]
        if len(self.names) > 1 or any(answer.parts.are_draws or not answer.variance > 0.0 for answer in both):
            moved = () if before is None else (f"without this {in_a_line(before)}",)
            return PictureNode(name, lines=(in_a_line(self), *moved))
        at = np.unique(np.concatenate([answer.curve(CURVE)[0] for answer in both]))
        at = np.linspace(at[0], at[-1], CURVE) if not self.parts.is_count or len(at) > CURVE else at
        at = np.unique(np.round(at)) if self.parts.is_count else at
        heights = [tuple(zip(at.tolist(), answer.density(at).tolist(), strict=True)) for answer in both]
        ends = () if self.mean_interval is None else tuple(float(np.ravel(end)[0]) for end in self.mean_interval)
        return PictureNode(name, lines=(in_a_line(self),), curve=Curve(heights[0], heights[1] if before else (), ends))

    @property
    def has_interval(self) -> bool:
        """Whether it was asked for with an interval of its mean, and has one."""
        return self.mean_interval is not None

    def to_frame(self) -> Any:
        """One row per component: states of the finite targets, weight, means, variances and covariances, or what it has besides;
        one row per draw."""
        finite = self.finite.names if self.finite is not None else ()
        columns: dict[str, Any] = dict(zip(finite, map(list, zip(*self.states, strict=True)), strict=True))
        numbers = self.parts.all_columns(self.names, self.weights)
        return frame(columns | dict(zip(apart(columns, (n for n, _ in numbers)), (a for _, a in numbers), strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """Moments, their errors and interval, quantiles and components as plain values."""
        named: dict[str, Any] = {"mean": self.mean, "sd": self.sd}
        if self.mean_interval is not None:
            named |= {"lower": self.mean_interval.lower, "upper": self.mean_interval.upper}
        named |= {} if self.error is None else {"standard_error": self.error}
        result: dict[str, Any] = {k: self._by_name(x) for k, x in named.items()}
        if self.parts.tells_quantiles:
            result["quantiles"] = {q: self._by_name(self.quantile(float(q))) for q in ("0.025", "0.5", "0.975")}
        if self.parts.are_draws:
            return {**result, "effective_sample_size": self.effective_sample_size}
        components = list(self.parts.records(self.names, self.weights))
        if self.finite is not None:
            states = ({"states": dict(zip(self.finite.names, s, strict=True))} for s in self.states)
            components = [{**record, **own} for record, own in zip(components, states, strict=True)]
        return {**result, "components": components}

    def _by_name(self, numbers: Any) -> dict[str, float]:
        return dict(zip(self.names, np.atleast_1d(numbers).tolist(), strict=True))

    def _simple(self, values: Any) -> Any:
        return float(values[0]) if len(self.names) == 1 else np.asarray(values)

    def _check_single(self, what: str) -> None:
        if len(self.names) > 1:
            raise ModelError(f"the answer is over {listing(self.names)} together, and a {what} is of one: ask for one at a time")

    def _headline(self) -> str:
        question = self._question(self.asked or (*self.names, *(self.finite.names if self.finite is not None else ())))
        if self.effective_sample_size is not None:
            return f"{question}, as good as {self.effective_sample_size:,.0f} independent ones"
        ends = f" ({', '.join(number(float(np.ravel(e)[0])) for e in self.mean_interval)})" if self.mean_interval else ""
        moments = f": mean {number(self.mean)}{ends}, sd {number(self.sd)}" if len(self.names) == 1 else ""
        return f"{question}{self.parts.kind}{moments}"

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        """Targets where there are several or draws of them, components where they differ in what was asked for."""
        several = len(self.names) > 1 or self.parts.are_draws
        targets: list[tuple[list[str], Rows]] = [self._targets()] if several else []
        if several and self.finite is None:
            return targets, ""
        if self.finite is not None and self.parts.are_draws:
            lines = int(np.count_nonzero(self.finite.probs > 0.0)) * len(self.names)
            heading = [*self.finite.names, *apart(self.finite.names, ["probability", "node", "mean", "±", "sd"])]
            return [*targets, (heading, list(islice(self._by_cell(self.finite), limit)))], and_more(lines - limit, "row")
        shown = max(1, limit // len(self.names))
        return [*targets, self._components(shown)], and_more(len(self) - shown, "component")

    def _targets(self) -> tuple[list[str], list[list[object]]]:
        """A line per target."""
        columns = {"mean": self.mean, "±": self.error, "sd": self.sd}
        if self.mean_interval is not None:
            columns |= {"lower": self.mean_interval.lower, "upper": self.mean_interval.upper}
        if self.parts.are_draws:
            columns |= {"2.5 %": self.quantile(0.025), "97.5 %": self.quantile(0.975)}
        numbers = {k: np.ravel(x) for k, x in columns.items() if x is not None}
        return ["node", *numbers], [[n, *(float(x[i]) for x in numbers.values())] for i, n in enumerate(self.names)]

    def _components(self, limit: int) -> tuple[list[str], list[list[object]]]:
        """A line per component; of several targets a line per component and target."""
        finite, d = self.finite.names if self.finite is not None else (), len(self.names)
        columns = [(name, column[: limit * d].tolist()) for name, column in self.parts.main_columns(self.names, self.weights)]
        states = [s for s in self.states[:limit] for _ in range(d)] or [()] * len(columns[0][1])
        rows = [[*s, *line] for s, *line in zip(states, *(column for _, column in columns), strict=True)]
        return [*finite, *apart(finite, [name for name, _ in columns])], rows

    def _by_cell(self, finite: Distribution) -> Iterator[list[object]]:
        """A line per cell of the finite targets that was drawn, and target."""
        for codes in np.argwhere(finite.probs > 0.0).tolist():
            states = tuple(v.states[c] for v, c in zip(finite.variables, codes, strict=True))
            _, lines = self[states]._targets()
            yield from ([*states, finite[states], *line[:4]] for line in lines)


@dataclass(frozen=True, eq=False)
class DistributionParts(MixtureParts):
    """The members of the variable's distribution with these parameters, a line each."""

    variable: Distributed
    parameters: Array

    def check(self, n: int, n_targets: int) -> None:
        if n_targets != 1:
            raise ModelError(f"a mixture of {self.variable.family!r} is of a single number")
        shape = (n, len(self.variable.family.names))
        object.__setattr__(self, "parameters", view_of_shape(self.parameters, shape, "parameters"))

    @property
    def kind(self) -> str:  # type: ignore[override]
        return f", {repr(self.variable.family).removesuffix('()')}"

    @property
    def is_count(self) -> bool:  # type: ignore[override]
        return self.variable.whole

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        return np.asarray(self._members.mean), np.asarray(self._members.variance)

    @cached_property
    def each(self) -> Any:
        return self.variable.family.kind.scipy(self._members)

    def log_each(self, points: Array, names: Sequence[str]) -> Array:
        return np.asarray(self._members.log_prob(points))

    def draw(self, chosen: Ints, rng: np.random.Generator) -> Array:
        return np.asarray(self.variable.family.member(self.parameters[chosen]).sample(1, rng)[0], np.float64)[:, None]

    def all_columns(self, names: Sequence[str], weights: Array) -> Columns:
        return [("weight", weights), *zip(self.variable.family.names, self.parameters.T, strict=True)]

    @cached_property
    def _members(self) -> Any:
        return self.variable.family.member(self.parameters)


def _numbers(x: Any) -> Array:
    refusal = f"the distribution of a number is asked about numbers, not {x!r}"
    array = as_numbers(x, refusal)
    if np.isnan(array).any():
        raise ModelError(refusal)
    return array
