"""p(child | parents) of a distribution that was chosen for the child, its parameters by the states of the parents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Ints
from suffice.errors import ModelError, checked_level
from suffice.families.protocol.cpd import Array, Columns, Cpd, flat_index
from suffice.families.protocol.family import Estimate, Interval, Mode
from suffice.numerics.inference.numbers.gaussian import CountNode, DistributionNode
from suffice.statistics import Moments
from suffice.statistics.counts import RowFormula, describe


class MemberCpd(Cpd):
    """p(child | parents), in each configuration of the finite parents a member of one family of `suffice.exponential`.

    `parameters` has an axis per parent and one for the parameters; NaN where a configuration has none.
    """

    parameters: Any

    marks_unseen: ClassVar[bool] = True

    @property
    def means(self) -> Array:
        """The mean of the child in each configuration."""
        return self._each(lambda member: member.mean)

    @property
    def variances(self) -> Array:
        """Its variance."""
        return self._each(lambda member: member.variance)

    def as_line(self) -> tuple[Array, Array, Array]:
        return self.means, np.zeros((*self.means.shape, 0)), self.variances

    def _entropies(self, held: npt.NDArray[np.bool_]) -> Array:
        return self._each(lambda member: member.entropy())[held]

    def mean_of(self, derived: RowFormula) -> Array:
        """The mean in each configuration of what is derived from the child: of T it is A′, of ln h it is A − η·A′ − entropy."""
        if derived.formula in self.family.kind.statistic:
            j = self.family.kind.statistic.index(derived.formula)
            return self._each(lambda member: member.gradient()[..., j])

        def mean_log_base(member: Any) -> Array:  # 0 where a member is on the edge, and has one value
            with np.errstate(invalid="ignore"):
                fixed = np.asarray(member.log_normaliser()) - (member.natural * member.gradient()).sum(axis=-1) - member.entropy()
            return np.asarray(np.where(np.isnan(fixed), 0.0, fixed))

        _, sign = self.family.kind.base or ("", 1.0)
        return sign * self._each(mean_log_base)

    def node(self, number: Mapping[str, int], real_number: Mapping[str, int]) -> CountNode:
        return DistributionNode.of(tuple(number[p] for p in self.parents), self.means, self.variances, self._at)

    def interval(self, level: float = 0.95) -> dict[str, Interval]:
        """The credible interval of each parameter, by its name."""
        lower, upper = self._belief().interval(checked_level(level))
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
        return family.distribution.predictive(family.kind.belief(family.distribution, count[0], total[0]))

    def log_likelihood(self, statistic: Moments) -> float:
        """Σ ln p(x | u) = Σᵤ η·S − N A(η) + Σ ln h(x), from sums alone."""
        count, total, base = self.family.sums(self.child, statistic)
        some = count > 0
        members = self._at_rows(statistic.keys[some])
        own = self.family.kind.log_likelihood(members, count[some], total[some])
        return float(own.sum() + self.family.checked_base(self.child, base))

    def log_prob(self, columns: Columns) -> Array:
        x = np.asarray(columns[self.child.name], dtype=np.float64)
        rows = flat_index(columns, self.parent_variables, len(x))
        few = len(x) / (4.0 * self.parameters.size)
        small = self.family.kind.whole and len(x) > 0 and 0.0 <= float(x.min()) <= float(x.max()) < few
        if not small or not np.array_equal(values := x.astype(np.int64), x):
            return np.asarray(self._at_rows(rows).log_prob(x), dtype=np.float64)
        # Whole numbers so small and so many that each is looked up sooner than computed.
        width = int(values.max()) + 1
        pairs = rows * width + values
        counts = np.bincount(pairs)
        logs, known = np.empty(len(counts)), np.flatnonzero(counts)
        logs[known] = self._at_rows(known // width).log_prob((known % width).astype(np.float64))
        return np.asarray(logs[pairs])

    def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]:
        """Numbers for n rows whose parents are in `columns`."""
        members = self._at_rows(flat_index(columns, self.parent_variables, n))
        try:
            return np.asarray(members.sample(1, rng)[0], dtype=np.float64)
        except ModelError as error:
            raise ModelError(f"{self.child.name!r} cannot be drawn: {error.said}") from None

    def _draw_parameters(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        return self._by_name(self._belief().sample(n, rng).reshape(n, *self.parameters.shape))

    def quantiles_at(self, means: Array, variances: Array, shares: Array) -> Array:
        """Below which so large a share of the members of these means and variances lies; NaN where a mean is."""
        result, known = np.full(len(means), np.nan), ~np.isnan(means)
        members = self.family.kind.from_moments(self.family.distribution, means[known], variances[known])
        result[known] = self.family.kind.scipy(members).ppf(shares[known])
        return result

    def fill_empty(self, mean: float, variance: float) -> Self:
        kind, one = self.family.kind, np.ones(1)
        own = self.family.parameters_of(kind.from_moments(self.family.distribution, mean * one, variance * one))[0]
        return self._with(np.where(np.isnan(self.parameters), own, self.parameters))

    def perturb(self, parent: str, rng: np.random.Generator) -> Self:
        means = self.means * rng.uniform(0.8, 1.25, self.means.shape)
        members = self.family.kind.from_moments(self.family.distribution, means.reshape(-1), self.variances.reshape(-1))
        return self._with(self.family.parameters_of(members))

    def log_prior(self, imagined: Moments, how: Estimate, log_scale: float) -> float:
        """The logarithm whose maximiser, with ln L, the estimate is: η·τ − κ A(η); of modes, that of the parameter's density."""
        count, total, _ = self.family.sums(self.child, imagined.at(np.arange(self.means.size)))
        lines = self.parameters.reshape(-1, len(self.family.names))
        if isinstance(how, Mode) and lines.shape[1] == 1:
            return float(np.sum(self.family.kind.belief(self.family.distribution, count, total).log_prob(lines[:, 0])))
        return float(self.family.kind.log_likelihood(self.family.member(lines), count, total).sum())

    def _belief(self) -> Any:
        """What is known of the parameters after seen and imagined rows."""
        count, total, _ = self.family.sums(self.child, self.posterior().at(np.arange(self.means.size)))
        return self.family.kind.belief(self.family.distribution, count, total)

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
            where = describe(int(rows[np.argmax(lost)]), self.parent_variables)
            raise ModelError(f"{self.child.name!r} has no {self.noun} at {where}: no row had it; fit with a prior")
        return self.family.member(lines)

    def _by_name(self, parameters: Array) -> dict[str, Array]:
        """Parameters as this distribution holds them."""
        return {"parameters": parameters}

    def _with(self, parameters: Array) -> Self:
        return replace(self, **self._by_name(parameters.reshape(self.parameters.shape)))  # type: ignore[type-var]

    def _numbers(self, limit: int) -> tuple[list[str], list[list[object]]]:
        return list(self.family.names), self.parameters.reshape(-1, self.parameters.shape[-1])[:limit].tolist()
