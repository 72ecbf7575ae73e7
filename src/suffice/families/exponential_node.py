"""Nodes of any distribution of `suffice.exponential`, with its own parameters for each configuration of the finite parents.

    p(x | u) = h(x) exp(η[u]·T(x) − A(η[u]))
    statistic     per u: the rows N, S = Σ T(x), and Σ ln h(x)
    prior         κ imagined rows whose T sum to τ, at each u
    estimate      the member with E[T] = S/N, with a prior (S + τ)/(N + κ): of one parameter that is its posterior mean, of two
                  the member whose E[T] is the posterior mean of E[T] (Diaconis & Ylvisaker 1979, Ann. Statist. 7, p. 269)
                  mode: the parameters where their posterior density is highest
    evidence      Z(κ + N, τ + S) − Z(κ, τ) + Σ ln h(x), Z in closed form for one parameter, for two by `exponential.pairs`

What differs between distributions, `node_kinds` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError, ModelError, StatisticsError, SufficeError
from suffice.families.family import Array, Columns, Cpd, Estimate, Interval, Mode, checked_level, flat_index, frame, split
from suffice.families.node_kinds import Belief, NodeKind, kind_of
from suffice.inference.network import DistributionNode
from suffice.statistics import Moments, Request
from suffice.statistics.configurations import checked_cells, described, frozen, n_configurations, sizes
from suffice.statistics.derived import Derived
from suffice.variables import Distributed, Finite, Variable

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class ExponentialNode:
    """The family of nodes of one distribution, by their finite parents.

    >>> from suffice.exponential import Gamma
    >>> family = ExponentialNode(Gamma())
    >>> family, family.needs(family.variable("wait"), []).derived
    (Gamma(), (Derived(column='wait', formula='ln x', n=0.0),))
    """

    distribution: Any

    iterative: ClassVar[bool] = False
    normal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if kind_of(self.distribution) is None:
            raise FitError(f"{self.distribution!r} cannot be the distribution of a node")
        object.__setattr__(self, "distribution", self.distribution.bare)

    def __repr__(self) -> str:
        return repr(self.distribution)

    @property
    def kind(self) -> NodeKind:
        kind = kind_of(self.distribution)
        assert kind is not None
        return kind

    @property
    def whole(self) -> bool:
        return self.kind.whole

    @property
    def support(self) -> str:
        """What its values are, in words."""
        return str(self.distribution.support)

    @property
    def names(self) -> tuple[str, ...]:
        """Those of its parameters."""
        names: tuple[str, ...] = self.distribution.names
        return names

    def variable(self, name: str) -> Distributed:
        """A column as a variable of this family."""
        return Distributed(name, self)

    def impossible(self, values: Array) -> npt.NDArray[np.bool_]:
        """Which values cannot be; one that is missing may be anything."""
        result = np.zeros(np.shape(values), bool)
        there = ~np.isnan(values)
        x = values[there]
        with np.errstate(divide="ignore", invalid="ignore"):
            fine = np.isfinite(self.distribution.log_base(x)) & np.isfinite(self.distribution.sufficient(x)).all(axis=-1)
        result[there] = ~fine
        return result

    def needs(self, child: Variable, parents: Sequence[Variable]) -> Request:
        formulas = [f for f in self.kind.statistic if f != "x"] + ([self.kind.base[0]] if self.kind.base else [])
        derived = tuple(self.derived(child.name, f) for f in formulas)
        return Request(tuple(p.name for p in parents), (child.name,), derived)

    def derived(self, column: str, formula: str) -> Derived:
        """A formula of a column, with the known number where it has one."""
        return Derived(column, formula, self.kind.known(self.distribution) if formula not in PLAIN else 0.0)

    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int:
        return n_configurations(split(parents)[0]) * len(self.names)

    def log_likelihood(self, child: Variable, seen: Moments) -> float:
        """The log-likelihood at its maximum."""
        count, total, base = self.sums(child, seen)
        some = count > 0
        members = self._members(child, seen.variables, seen.keys[some], total[some] / count[some, None])
        return float(self.kind.log_likelihood(members, count[some], total[some]).sum() + base)

    def log_evidence(self, child: Variable, seen: Moments, imagined: Moments) -> float:
        """The log-probability of the data with the parameters integrated out. An unseen configuration adds nothing."""
        count, total, base = self.sums(child, seen)
        some = count > 0
        prior_count, prior_total, _ = self.sums(child, imagined.at(seen.keys[some]))
        parts = self.kind.log_evidence(self.distribution, (prior_count, prior_total), (count[some], total[some]))
        return float(parts.sum() + base)

    def estimate(
        self, child: Variable, parents: Sequence[Variable], seen: Moments, imagined: Moments | None, how: Estimate
    ) -> ExponentialCpd:
        finite = split(parents)[0]
        every = np.arange(checked_cells(finite, f"the parameters of {child.name!r}"))
        count, total, _ = self.sums(child, (seen if imagined is None else seen + imagined).at(every))
        some = count > 0
        if not finite and not some[0]:
            raise FitError(f"{child.name!r} cannot be fitted: there are no rows")
        parameters = np.full((len(every), len(self.names)), np.nan)
        if imagined is not None and isinstance(how, Mode):
            parameters[some] = self._modes(child, count[some], total[some])
        else:
            members = self._members(child, finite, every[some], total[some] / count[some, None])
            parameters[some] = self.parameters_of(members)
        return ExponentialCpd(child, finite, parameters.reshape(*sizes(finite), -1), seen, imagined)

    def from_moments(self, child: Variable, parents: Sequence[Variable], moments: Moments) -> ExponentialCpd:
        """The distribution whose means and variances are these: where iterations start."""
        finite = split(parents)[0]
        own = moments.at(np.arange(n_configurations(finite)))
        members = self.kind.from_moments(self.distribution, own.mean[:, 0], own.scatter[:, 0, 0] / np.maximum(own.count, 1e-300))
        return ExponentialCpd(child, finite, self.parameters_of(members).reshape(*sizes(finite), -1))

    def member(self, parameters: Array) -> Any:
        """The members of these parameters, along the last axis, side by side."""
        return replace(self.distribution, **{name: parameters[..., i] for i, name in enumerate(self.names)})

    def parameters_of(self, members: Any) -> Array:
        """The other way."""
        return np.stack([np.asarray(getattr(members, name), dtype=np.float64) for name in self.names], axis=-1)

    def belief(self, child: Variable, moments: Moments) -> Belief:
        """What is known of the parameters after seen and imagined rows."""
        count, total, _ = self.sums(child, moments)
        return self.kind.belief(self.distribution, count, total)

    def imagined(self, child: Variable, parents: Sequence[Variable], count: float, mean: Array) -> Moments:
        """So many imagined rows everywhere, whose T average to these numbers; they have no Σ ln h(x), a constant of the data."""
        request = self.needs(child, parents)
        own = dict(zip(self.kind.statistic, np.asarray(mean, dtype=np.float64) * count, strict=True))
        x = own["x"] / count if "x" in own else float(self.distribution.from_mean(mean).mean)
        sums = np.array([[own.get(d.formula, 0.0) for d in request.derived]])
        numbers = [count], [[x]], np.zeros((1, 1, 1))
        everywhere = Moments((), request.real, [0], *numbers, derived=request.derived, sums=sums)  # type: ignore[arg-type]
        empty = np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 1)), np.zeros((0, 1, 1))
        return Moments(split(parents)[0], request.real, *empty, background=everywhere, derived=request.derived, sums=sums[:0])

    def sums(self, child: Variable, moments: Moments) -> tuple[Array, Array, float]:
        """N and S = Σ T(x) of each group, and Σ ln h(x) of all."""
        x = moments.count * (moments.mean[:, -1] + moments.rest[:, -1])
        parts = [x if f == "x" else moments.sum_of(self.derived(child.name, f)) for f in self.kind.statistic]
        total = np.stack(parts, axis=-1)
        if np.isnan(total).any():
            raise self._unknown(
                child, next(f for f, part in zip(self.kind.statistic, parts, strict=True) if np.isnan(part).any())
            )
        formula, sign = self.kind.base or ("", 0.0)
        base = sign * float(moments.sum_of(self.derived(child.name, formula)).sum()) if formula else 0.0
        return moments.count, total, base

    def checked_base(self, child: Variable, base: float) -> float:
        """Σ ln h(x), without which a likelihood is known only up to a constant."""
        if np.isnan(base):
            raise self._unknown(child, self.kind.base[0] if self.kind.base else "")
        return base

    def _unknown(self, child: Variable, formula: str) -> StatisticsError:
        return StatisticsError(
            f"these statistics do not hold the sum of {formula} of {child.name!r}, which {self!r} needs: gather them from rows, "
            f"with families={{{child.name!r}: {self!r}}}"
        )

    def _members(self, child: Variable, finite: Sequence[Finite], keys: Ints, mean: Array) -> Any:
        """The members with these means of T; one that does not exist is refused by its configuration."""
        try:
            return self.distribution.from_mean(mean)
        except SufficeError:
            for key, own in zip(keys.tolist(), mean, strict=True):
                self._check(child, finite, key, own)
            raise

    def _check(self, child: Variable, finite: Sequence[Finite], key: int, mean: Array) -> None:
        try:
            self.distribution.from_mean(mean)
        except SufficeError:
            where = f" at {described(key, finite)}" if finite else ""
            raise FitError(
                f"{child.name!r}{where} cannot be fitted as {self!r} by maximum likelihood: its values do not vary, or are all "
                "at the edge of what is possible; use a prior such as Conjugate(1), or fewer parents"
            ) from None

    def _modes(self, child: Variable, count: Array, total: Array) -> Array:
        try:
            return self.kind.belief(self.distribution, count, total).mode()
        except SufficeError as error:
            raise FitError(f"the posterior of {child.name!r} has no mode: {error}; use estimate=Mean()") from None


PLAIN = ("ln x", "ln(1 - x)", "ln x!")
"""Formulas without a known number."""


@dataclass(frozen=True, eq=False, repr=False)
class ExponentialCpd(Cpd):
    """p(child | parents), of the child's distribution: `parameters` has an axis per parent and one for the parameters, which are
    also there by their names. `seen` and `imagined` are the moments it was fitted from.

    The parameters of a configuration that no row had are NaN, without a prior.

    >>> from suffice.exponential import Gamma
    >>> cpd = ExponentialCpd(ExponentialNode(Gamma()).variable("wait"), (Finite("ill", ["no", "yes"]),), [[2.0, 1.0], [3.0, 0.5]])
    >>> cpd
    p(wait | ill), Gamma
    ill  shape  rate
    ───  ─────  ────
    no   2      1
    yes  3      0.5
    >>> cpd.rate, cpd.means
    (array([1. , 0.5]), array([2., 6.]))
    """

    child: Any
    parent_variables: tuple[Finite, ...]
    parameters: Array
    seen: Moments | None = None
    imagined: Moments | None = None

    arrays: ClassVar[tuple[str, ...]] = ("parameters",)
    marks_unseen: ClassVar[bool] = True

    def __post_init__(self) -> None:
        parameters = np.array(self.parameters, dtype=np.float64, order="C")
        object.__setattr__(self, "parent_variables", tuple(self.parent_variables))
        shape = (*sizes(self.parent_variables), len(self.family.names))
        if parameters.shape != shape:
            raise ModelError(f"the parameters of {self.child.name!r} need the shape {shape}, not {parameters.shape}")
        lines = parameters.reshape(-1, shape[-1])
        self.family.member(lines[~np.isnan(lines).any(axis=1)])  # what is out of bounds is refused there
        object.__setattr__(self, "parameters", frozen(parameters))

    def __getattr__(self, name: str) -> Any:
        """A parameter by its name."""
        names = self.__dict__["child"].family.names if "child" in self.__dict__ else ()
        if name not in names:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return self.parameters[..., names.index(name)]

    @property
    def family(self) -> ExponentialNode:
        family: ExponentialNode = self.child.family
        return family

    @property
    def means(self) -> Array:
        """The mean of the child in each configuration."""
        return self._each(lambda member: member.mean)

    @property
    def variances(self) -> Array:
        """Its variance."""
        return self._each(lambda member: member.variance)

    @property
    def entropies(self) -> Array:
        """Its entropy."""
        return self._each(lambda member: member.entropy())

    def expected(self, derived: Derived) -> Array:
        """The mean in each configuration of what is derived from the child: of T it is A′, of ln h it is A − η·A′ − entropy."""
        if derived.formula in self.family.kind.statistic:
            j = self.family.kind.statistic.index(derived.formula)
            return self._each(lambda member: member.gradient()[..., j])
        _, sign = self.family.kind.base or ("", 1.0)
        return sign * self._each(_mean_log_base)

    def node(self, number: Mapping[str, int], real_number: Mapping[str, int]) -> DistributionNode:
        return DistributionNode.of(tuple(number[p] for p in self.parents), self.means, self.variances, self._at)

    def interval(self, level: float = 0.95) -> dict[str, Interval]:
        """The credible interval of each parameter, by its name."""
        outside = (1.0 - checked_level(level)) / 2.0
        lower, upper = self._belief().interval(outside)
        shape = self.parameters.shape
        ends = lower.reshape(shape), upper.reshape(shape)
        return {name: Interval(*(end[..., i] for end in ends)) for i, name in enumerate(self.family.names)}

    def predictive(self, given: Mapping[str, object] | None = None) -> Any:
        """The distribution of the next child given its parents, the parameter integrated out; two have no formula."""
        g = self.configuration(given or {})
        family = self.family
        if len(family.names) > 1:
            raise ModelError(f"the predictive of {self.child.name!r}, {family!r}, has no formula; draw rows with sample")
        count, total, _ = family.sums(self.child, self.posterior().at(np.array([g])))
        belief: Any = family.kind.belief(family.distribution, count[0], total[0])
        return family.distribution.predictive(belief.of_parameter)

    def log_likelihood(self, statistic: Moments) -> float:
        """Σ ln p(x | u) = Σᵤ η·S − N A(η) + Σ ln h(x), from sums alone."""
        count, total, base = self.family.sums(self.child, statistic)
        some = count > 0
        members = self._at_rows(statistic.keys[some])
        own = self.family.kind.log_likelihood(members, count[some], total[some])
        return float(own.sum() + self.family.checked_base(self.child, base))

    def log_prob(self, columns: Columns) -> Array:
        x = np.asarray(columns[self.child.name], dtype=np.float64)
        return np.asarray(self._at_rows(flat_index(columns, self.parent_variables, len(x))).log_prob(x), dtype=np.float64)

    def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]:
        """Numbers for n rows whose parents are in `columns`."""
        return np.asarray(self._at_rows(flat_index(columns, self.parent_variables, n)).sample(1, rng)[0], dtype=np.float64)

    def to_frame(self) -> Any:
        """One row per configuration of the parents: its states, the parameters, their 95 % intervals where there are some."""
        header, rows = self._rows(self._n_rows())
        columns = {h: [row[i] for row in rows] for i, h in enumerate(header)}
        if self.imagined is not None and self.seen is not None:
            for name, (lower, upper) in self.interval().items():
                columns |= {f"{name} lower": lower.reshape(-1).tolist(), f"{name} upper": upper.reshape(-1).tolist()}
        return frame(columns)

    def drawn_parts(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """n draws of the parameters from their posterior."""
        return {"parameters": self._belief().sample(n, rng).reshape(n, *self.parameters.shape)}

    def quantiles_at(self, means: Array, variances: Array, shares: Array) -> Array:
        """Below which so large a share of the members of these means and variances lies; NaN where a mean is."""
        result, known = np.full(len(means), np.nan), ~np.isnan(means)
        members = self.family.kind.from_moments(self.family.distribution, means[known], variances[known])
        result[known] = self.family.kind.scipy(members).ppf(shares[known])
        return result

    def filled(self, mean: float, variance: float) -> Self:
        """The same, with a member of this mean and variance where there is none."""
        if not np.isnan(self.parameters).any():
            return self
        kind, one = self.family.kind, np.ones(1)
        own = self.family.parameters_of(kind.from_moments(self.family.distribution, mean * one, variance * one))[0]
        return replace(self, parameters=np.where(np.isnan(self.parameters), own, self.parameters))

    def moved_apart(self, rng: np.random.Generator) -> Self:
        """The same with its means moved a little, at random."""
        means = self.means * rng.uniform(0.8, 1.25, self.means.shape)
        members = self.family.kind.from_moments(self.family.distribution, means.reshape(-1), self.variances.reshape(-1))
        return replace(self, parameters=self.family.parameters_of(members).reshape(self.parameters.shape))

    def log_prior(self, imagined: Moments, how: Estimate) -> float:
        """The logarithm whose maximiser, with ln L, the estimate is: η·τ − κ A(η); of modes, that of the parameter's density."""
        count, total, _ = self.family.sums(self.child, imagined.at(np.arange(self.means.size)))
        lines = self.parameters.reshape(-1, len(self.family.names))
        if isinstance(how, Mode) and lines.shape[1] == 1:
            belief: Any = self.family.kind.belief(self.family.distribution, count, total)
            return float(np.sum(belief.of_parameter.log_prob(lines[:, 0])))
        return float(self.family.kind.log_likelihood(self.family.member(lines), count, total).sum())

    def _belief(self) -> Belief:
        return self.family.belief(self.child, self.posterior().at(np.arange(self.means.size)))

    def _each(self, what: Any) -> Array:
        """A number for each configuration; NaN where there are no parameters."""
        lines = self.parameters.reshape(-1, self.parameters.shape[-1])
        known = ~np.isnan(lines).any(axis=1)
        result = np.full(len(lines), np.nan)
        result[known] = what(self.family.member(lines[known]))
        return result.reshape(self.parameters.shape[:-1])

    def _at(self, index: Ints, values: Array) -> Array:
        """ln p(value) in some configurations, [configurations, values]; NaN where there are no parameters."""
        lines = self.parameters.reshape(-1, self.parameters.shape[-1])[index]
        known = ~np.isnan(lines).any(axis=1)
        result = np.full((len(index), len(values)), np.nan)
        result[known] = self.family.member(lines[known][:, None, :]).log_prob(values[None, :])
        return result

    def _at_rows(self, rows: Ints) -> Any:
        """The member of each row's configuration; one that has none is refused by name."""
        lines = self.parameters.reshape(-1, self.parameters.shape[-1])[rows]
        lost = np.isnan(lines).any(axis=1)
        if lost.any():
            where = described(int(rows[np.argmax(lost)]), self.parent_variables)
            raise ModelError(f"{self.child.name!r} has no parameters at {where}: no row had it; fit with a prior")
        return self.family.member(lines)

    def _kind(self) -> str:
        return repr(self.family).removesuffix("()")

    def _numbers(self, limit: int) -> tuple[list[str], list[list[object]]]:
        return list(self.family.names), self.parameters.reshape(-1, self.parameters.shape[-1])[:limit].tolist()


def _mean_log_base(member: Any) -> Array:
    """E[ln h(x)]; 0 where a member is on the edge, and has one value."""
    with np.errstate(invalid="ignore"):
        fixed = np.asarray(member.log_normaliser()) - (member.natural * member.gradient()).sum(axis=-1) - member.entropy()
    return np.asarray(np.where(np.isnan(fixed), 0.0, fixed))
