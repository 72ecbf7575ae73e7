"""Nodes of any distribution of `suffice.exponential`, with its own parameters for each configuration of the finite parents.

    p(x | u) = h(x) exp(η[u]·T(x) − A(η[u]))
    statistic     per u: the rows N, S = Σ T(x), and Σ ln h(x)
    prior         κ imagined rows whose T sum to τ, at each u
    estimate      the member with E[T] = S/N, with a prior (S + τ)/(N + κ): of one parameter that is its posterior mean, of two
                  the member whose E[T] is the posterior mean of E[T] (Diaconis & Ylvisaker 1979, Ann. Statist. 7, p. 269)
                  mode: the parameters where their posterior density is highest
    evidence      Z(κ + N, τ + S) − Z(κ, τ) + Σ ln h(x), Z in closed form for one parameter, for two by `exponential.pairs`

What differs between distributions, `node_kinds` says. The nodes of `exponential.Poisson` have names of their own: the variable is
a `Count`, and the rates, λ[u] ~ Gamma(a, b) of a imagined events in b imagined rows, stand under that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Ints
from suffice.basis.libraries import sc
from suffice.basis.registry import find, not_known
from suffice.basis.variables import Count, Distributed, Finite, Variable
from suffice.errors import FitError, FormatError, ModelError, StatisticsError, SufficeError
from suffice.errors.remedies import BY_MEAN, CONJUGATE, as_family, of_python
from suffice.families.chosen.exponential_cpd import MemberCpd
from suffice.families.chosen.node_kinds import KINDS, NodeKind, distribution_of, kind_of
from suffice.families.protocol.cpd import frame
from suffice.families.protocol.family import Array, Estimate, Interval, Mean, Mode, split
from suffice.numerics.exponential.gamma import Poisson
from suffice.numerics.inference.numbers.gaussian import CountNode
from suffice.statistics import Moments, Request
from suffice.statistics.counts import RowFormula, array_of, checked_cells, describe, flat, freeze, n_configurations, sizes


@dataclass(frozen=True, eq=False, repr=False)
class ExponentialCpd(MemberCpd):
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

    types: ClassVar[tuple[str, ...]] = ("distribution",)
    children: ClassVar[Any] = Distributed
    arrays: ClassVar[tuple[str, ...]] = ("parameters",)
    positive: ClassVar[tuple[str, ...]] = ("parameters",)

    def __post_init__(self) -> None:
        parameters = np.array(self.parameters, dtype=np.float64, order="C")
        object.__setattr__(self, "parent_variables", tuple(self.parent_variables))
        shape = (*sizes(self.parent_variables), len(self.family.names))
        if parameters.shape != shape:
            raise ModelError(f"the parameters of {self.child.name!r} need the shape {shape}, not {parameters.shape}")
        lines = parameters.reshape(-1, shape[-1])
        self.family.member(lines[~np.isnan(lines).any(axis=1)])  # what is out of bounds is refused there
        object.__setattr__(self, "parameters", freeze(parameters))

    def __getattr__(self, name: str) -> Any:
        """A parameter by its name."""
        names = self.__dict__["child"].family.names if "child" in self.__dict__ else ()
        if name not in names:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return self.parameters[..., names.index(name)]

    @property
    def family(self) -> Any:
        return self.child.family

    def to_frame(self) -> Any:
        """One row per configuration of the parents: its states, the parameters, their 95 % intervals where there are some."""
        header, rows = self._rows(self._n_rows())
        columns = {h: [row[i] for row in rows] for i, h in enumerate(header)}
        if self.has_posterior:
            for name, (lower, upper) in self.interval().items():
                columns |= {f"{name} lower": lower.reshape(-1).tolist(), f"{name} upper": upper.reshape(-1).tolist()}
        return frame(columns)

    def to_dict(self) -> dict[str, Any]:
        """The family by its word and its known number, and the parameters."""
        kind = self.family.kind
        constants = {kind.constant: kind.known_number(self.family.distribution)} if kind.constant else {}
        return {"type": self.types[0], "family": kind.word, "constants": constants, "parameters": flat(self.parameters)}

    @classmethod
    def variable_of(cls, d: Mapping[str, Any], variable: Variable) -> Variable:
        what = f"the distribution {d['family']!r} of {variable.name!r}"
        if find("distributions", d["family"]) is None:
            raise not_known(what)
        if isinstance(variable, Finite):
            raise FormatError(f"{what} is one of numbers, and the file says states")
        return ExponentialNode(distribution_of(d["family"], d["constants"])).variable(variable.name)

    @classmethod
    def _arrays_of(cls, d: Mapping[str, Any], child: Any, parents: Sequence[Variable]) -> dict[str, Array]:
        finite = split(parents)[0]
        checked_cells(finite, f"the parameters of {child.name!r}")
        return {"parameters": array_of(d["parameters"]).reshape(*sizes(finite), len(child.family.names))}

    def _kind(self) -> str:
        return repr(self.family).removesuffix("()")


@dataclass(frozen=True, repr=False)
class ExponentialNode:
    """The family of nodes of one distribution, by their finite parents."""

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
        return KINDS[type(self.distribution)]

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
        return tuple(self.distribution.names)

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
        derived = tuple(self.formula_of(child.name, f) for f in dict.fromkeys(formulas))
        return Request(tuple(p.name for p in parents), (child.name,), derived)

    def formula_of(self, column: str, formula: str) -> RowFormula:
        """A formula of a column, with the known number where it has one."""
        plain = formula in ("ln x", "ln(1 - x)", "ln x!")
        return RowFormula(column, formula, 0.0 if plain else self.kind.known_number(self.distribution))

    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int:
        return n_configurations(split(parents)[0]) * len(self.names)

    def log_likelihood(self, child: Variable, seen: Moments) -> float:
        """The log-likelihood at its maximum."""
        count, total, base = self.sums(child, seen)
        some = count > 0
        members = self._members(child, seen.variables, seen.keys[some], total[some] / count[some, None])
        return float(self.kind.log_likelihood(members, count[some], total[some]).sum() + self.checked_base(child, base))

    def log_evidence(self, child: Variable, seen: Moments, imagined: Moments) -> float:
        """The log-probability of the data with the parameters integrated out. An unseen configuration adds nothing."""
        count, total, base = self.sums(child, seen)
        some = count > 0
        prior_count, prior_total, _ = self.sums(child, imagined.at(seen.keys[some]))
        parts = self.kind.log_evidence(self.distribution, (prior_count, prior_total), (count[some], total[some]))
        return float(parts.sum() + self.checked_base(child, base))

    def estimate(
        self, child: Variable, parents: Sequence[Variable], seen: Moments, imagined: Moments | None, how: Estimate
    ) -> MemberCpd:
        finite = split(parents)[0]
        every = np.arange(checked_cells(finite, f"the parameters of {child.name!r}"))
        count, total, _ = self.sums(child, (seen if imagined is None else seen + imagined).at(every))
        some = count > 0
        if not finite and not some[0]:
            raise FitError(f"{child.name!r} cannot be fitted: there are no rows")
        parameters = np.full((len(every), len(self.names)), np.nan)
        if imagined is not None and isinstance(how, Mode):
            parameters[some] = self._modes(child, finite, every[some], count[some], total[some])
        else:
            members = self._members(child, finite, every[some], total[some] / count[some, None])
            parameters[some] = self.parameters_of(members)
        return self.cpd(child, finite, parameters.reshape(*sizes(finite), len(self.names)), seen, imagined)

    def cpd(self, child: Any, parents: Sequence[Finite], parameters: Array, seen: Any = None, imagined: Any = None) -> MemberCpd:
        """The distribution with these parameters, an axis per parent and one for themselves."""
        return ExponentialCpd(child, tuple(parents), parameters, seen, imagined)

    def from_moments(self, child: Variable, parents: Sequence[Variable], moments: Moments) -> MemberCpd:
        """The distribution whose means and variances are these: where iterations start."""
        finite = split(parents)[0]
        own = moments.at(np.arange(n_configurations(finite)))
        members = self.kind.from_moments(self.distribution, own.mean[:, 0], own.scatter[:, 0, 0] / np.maximum(own.count, 1e-300))
        return self.cpd(child, finite, self.parameters_of(members).reshape(*sizes(finite), -1))

    def member(self, parameters: Array) -> Any:
        """The members of these parameters, along the last axis, side by side."""
        return replace(self.distribution, **{name: parameters[..., i] for i, name in enumerate(self.names)})

    def parameters_of(self, members: Any) -> Array:
        """The other way."""
        return np.stack([np.asarray(getattr(members, name), dtype=np.float64) for name in self.names], axis=-1)

    def imagine_rows(self, child: Variable, parents: Sequence[Variable], count: float, mean: Array) -> Moments:
        """So many imagined rows everywhere, whose T average to these numbers; they have no Σ ln h(x), a constant of the data."""
        request = self.needs(child, parents)
        own = dict(zip(self.kind.statistic, np.asarray(mean, dtype=np.float64) * count, strict=True))
        x = own["x"] / count if "x" in own else float(self.distribution.from_mean(mean).mean)
        sums = np.array([[own.get(d.formula, 0.0) for d in request.derived]])
        numbers = [count], [[x]], np.zeros((1, 1, 1))
        everywhere = Moments((), request.real, [0], *numbers, derived=request.derived, sums=sums)  # type: ignore[arg-type]
        return everywhere.over(split(parents)[0])

    def sums(self, child: Variable, moments: Moments) -> tuple[Array, Array, float]:
        """N and S = Σ T(x) of each group, and Σ ln h(x) of all."""
        x = moments.count * (moments.mean[:, -1] + moments.rest[:, -1])
        parts = [x if f == "x" else moments.sum_of(self.formula_of(child.name, f)) for f in self.kind.statistic]
        total = np.stack(parts, axis=-1)
        if lost := [f for f, part in zip(self.kind.statistic, parts, strict=True) if np.isnan(part).any()]:
            raise self._unknown_formula(child, lost[0])
        formula, sign = self.kind.base or ("", 0.0)
        base = sign * float(moments.sum_of(self.formula_of(child.name, formula)).sum()) if formula else 0.0
        return moments.count, total, base

    def checked_base(self, child: Variable, base: float) -> float:
        """Σ ln h(x), without which a likelihood is known only up to a constant."""
        if np.isnan(base):
            raise self._unknown_formula(child, self.kind.base[0] if self.kind.base else "")
        return base

    def _unknown_formula(self, child: Variable, formula: str) -> StatisticsError:
        return StatisticsError(
            f"these statistics do not hold the sum of {formula} of {child.name!r}, which {self!r} needs: gather them from rows, "
            f"with {as_family(child.name, repr(self))}"
        )

    def _members(self, child: Variable, finite: Sequence[Finite], keys: Ints, mean: Array) -> Any:
        """The members with these means of T; one that does not exist is refused by its configuration."""
        try:
            return self.distribution.from_mean(mean)
        except SufficeError:
            if len(keys) != 1:
                for i in range(len(keys)):
                    self._members(child, finite, keys[i : i + 1], mean[i : i + 1])
                raise
            where = f" at {describe(int(keys[0]), finite)}" if finite else ""
            alone = f"leave it out{of_python(', or imagine others beside them: prior=Conjugate(1, mean=...)')}"
            raise FitError(
                f"{child.name!r}{where} cannot be fitted as {self!r}: its values do not vary, or are all at the edge of what is "
                f"possible; {f'use a prior such as {CONJUGATE}, or fewer parents' if finite else alone}"
            ) from None

    def _modes(self, child: Variable, finite: Sequence[Finite], keys: Ints, count: Array, total: Array) -> Array:
        """The parameters of largest posterior density; where there are none is refused by its configuration."""
        try:
            return np.reshape(self.kind.belief(self.distribution, count, total).mode, (len(keys), -1))
        except SufficeError as error:
            if len(keys) > 1:
                for i in range(len(keys)):
                    self._modes(child, finite, keys[i : i + 1], count[i : i + 1], total[i : i + 1])
            where = f" at {describe(int(keys[0]), finite)}" if finite else ""
            what = " and ".join(self.names)
            raise FitError(
                f"the posterior of the {what} of {child.name!r} has no mode{where}: {error.said}; use {BY_MEAN} or a stronger "
                "prior"
            ) from None


@dataclass(frozen=True, repr=False)
class PoissonNode(ExponentialNode):
    """The family of counts with a rate for each configuration of their finite parents."""

    distribution: Any = field(default_factory=Poisson)

    def cpd(
        self, child: Any, parents: Sequence[Finite], parameters: Array, seen: Any = None, imagined: Any = None
    ) -> PoissonRates:
        return PoissonRates(child, tuple(parents), parameters[..., 0], seen, imagined)

    def from_moments(self, child: Variable, parents: Sequence[Variable], moments: Moments) -> PoissonRates:
        """The distribution whose means are these: where iterations start."""
        return self.estimate(child, parents, moments, None, Mean())  # type: ignore[return-value]

    def _unknown_formula(self, child: Variable, formula: str) -> StatisticsError:
        return StatisticsError(
            f"these moments of {child.name!r} do not hold Σ ln n!, which the likelihood of counts needs; gather them from data "
            f"in which {child.name!r} is declared a Count"
        )


@dataclass(frozen=True, eq=False, repr=False)
class PoissonRates(MemberCpd):
    """p(child | parents) = Poisson(rates[u]), an axis per parent; `seen` and `imagined` are the moments it was fitted from.

    The rate of a configuration that no row had is NaN, without a prior.

    >>> from suffice import Count
    >>> import math
    >>> round(math.exp(PoissonRates(Count("n"), (), 2.0).log_prob({"n": np.array([3.0])})[0]), 6)
    0.180447
    """

    child: Variable
    parent_variables: tuple[Finite, ...]
    rates: Array
    seen: Moments | None = None
    imagined: Moments | None = None

    types: ClassVar[tuple[str, ...]] = ("poisson",)
    children: ClassVar[Any] = Count
    arrays: ClassVar[tuple[str, ...]] = ("rates",)
    positive: ClassVar[tuple[str, ...]] = ("rates",)
    kind: ClassVar[str] = "Poisson"
    noun: ClassVar[str] = "rate"
    family: ClassVar[PoissonNode] = PoissonNode()  # type: ignore[misc]

    def __post_init__(self) -> None:
        rates = np.array(self.rates, dtype=np.float64, order="C")
        object.__setattr__(self, "parent_variables", tuple(self.parent_variables))
        shape = sizes(self.parent_variables)
        if rates.shape != shape:
            axes = f" (axes {list(self.parents)})" if shape else ""
            raise ModelError(f"the rates of {self.child.name!r} need the shape {shape}{axes}, not {rates.shape}")
        if np.isinf(rates).any() or np.any(rates < 0.0):
            wrong = rates[np.isinf(rates) | (rates < 0.0)][0]
            raise ModelError(f"the rates of {self.child.name!r} must be finite numbers from 0 up, not {wrong:g}")
        object.__setattr__(self, "rates", freeze(rates))

    @property
    def parameters(self) -> Array:
        return self.rates[..., None]

    @property
    def means(self) -> Array:
        return self.rates

    variances = means

    def node(self, number: Mapping[str, int], real_number: Mapping[str, int]) -> CountNode:
        return CountNode.of(tuple(number[p] for p in self.parents), self.rates)

    def interval(self, level: float = 0.95) -> Interval:  # type: ignore[override]
        """The credible interval of each rate: quantiles of its Gamma(a + S, b + N)."""
        return super().interval(level)["rate"]

    def to_frame(self) -> Any:
        """One row per configuration of the parents: its states, the rate, its 95 % interval where there is one."""
        return self._frame("rate", self.rates, self.parent_variables)

    def perturb(self, parent: str, rng: np.random.Generator) -> PoissonRates:
        return replace(self, rates=self.rates * rng.uniform(0.7, 1.4, self.rates.shape))

    def log_prior(self, imagined: Moments, how: Estimate, log_scale: float) -> float:
        """Σ a ln λ − b λ for means, with a imagined events in b rows; Σ (a − 1) ln λ − b λ for modes."""
        prior, rates = imagined.at(np.arange(self.rates.size)), self.rates.reshape(-1)
        events = prior.count * prior.mean[:, 0] - how.less
        return float((sc.xlogy(events, rates) - prior.count * rates).sum())

    def _by_name(self, parameters: Array) -> dict[str, Array]:
        return {"rates": parameters[..., 0]}
