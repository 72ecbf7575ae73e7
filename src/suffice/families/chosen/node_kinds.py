"""What a distribution of `suffice.exponential` has to say besides, to be a node: which columns its statistic is a sum of, how its
parameters follow from a mean and a variance, what is believed of them after some rows, and its words.

A kind is a class with a word; to define it is all that a further distribution costs. Priors of such nodes are imagined rows
(`Conjugate`), or a conjugate prior itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from suffice.basis.libraries import sc, st
from suffice.basis.registry import Named, find
from suffice.basis.variables import Distributed, Finite, Variable
from suffice.errors import FitError, ModelError
from suffice.families.protocol.family import Prior, check_positive
from suffice.numerics.exponential import Beta, Binomial, Exponential, Gamma, Geometric, NegativeBinomialKnownSize
from suffice.numerics.exponential import Poisson as PoissonCounts
from suffice.numerics.exponential.arithmetic.values import Array, Interval, tail
from suffice.numerics.exponential.pairs import PairBelief
from suffice.numerics.exponential.protocol.family import ExponentialFamily as Distribution
from suffice.numerics.exponential.protocol.statistic import Totals
from suffice.statistics import Moments, Statistics

PRIORS: dict[str, Any] = {"Gamma": Gamma, "Beta": Beta}
"""The conjugate priors of distributions with one parameter."""

MIDDLE = 0.9
"""A variance of a share is taken for at most this part of the largest that there is."""


@dataclass(frozen=True, eq=False)
class PairBeliefs:
    """The two parameters of each member, by `PairBelief`; it answers as the conjugate priors of one parameter do."""

    each: tuple[PairBelief, ...]

    @property
    def mode(self) -> Array:
        return np.array([belief.mode for belief in self.each])

    def interval(self, level: float) -> Interval:
        ends = np.array([[belief.interval(j, tail(level)) for j in (0, 1)] for belief in self.each])
        return Interval(ends[..., 0], ends[..., 1])

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return np.stack([belief.sample(n, rng) for belief in self.each], axis=1)


KINDS: dict[type, NodeKind] = {}


class NodeKind(Named):
    """A distribution with one parameter, whose conjugate prior has a closed form."""

    listed_in = "distributions"
    of: ClassVar[type[Distribution]]
    whole: ClassVar[bool] = False
    statistic: ClassVar[tuple[str, ...]] = ("x",)
    """The formulas whose sums are those of T: the column itself, or what is derived from it."""
    base: ClassVar[tuple[str, float] | None] = None
    """The formula of ln h, and its sign."""
    constant: ClassVar[str | None] = None
    """The field that is a known number."""

    if TYPE_CHECKING:
        # The rows that a conjugate prior imagines, and the sum of their T; the members as scipy has them.
        def imagine_rows(self, distribution: Any, prior: Any) -> tuple[float, Array]: ...
        def scipy(self, member: Any) -> Any: ...

    def __init_subclass__(cls) -> None:
        if "of" in vars(cls):
            cls._refuse_borrowed()
        super().__init_subclass__()
        if "of" in vars(cls):
            KINDS[cls.of] = cls()

    @classmethod
    def _refuse_borrowed(cls) -> None:
        """Refuse a kind that would answer with the quantiles, or the member of a mean, of another density."""
        wrong = [c for c in cls.__mro__ if "of" in vars(c) and vars(c)["of"]._log_density is not cls.of._log_density]
        if cls.statistic != ("x",):
            wrong.append(NodeKind)  # whose member of a mean is that of E[T]
        said = {name: next((c for c in cls.__mro__ if name in vars(c)), None) for name in ("scipy", "from_moments")}
        if lost := [name for name, c in said.items() if c is None or c in wrong]:
            raise ModelError(
                f"{cls.__name__} must say its own {', '.join(lost)}: what it inherits is not that of {cls.of.__name__}"
            )

    def known_number(self, distribution: Any) -> float:
        """The known number; 0 where there is none."""
        return float(getattr(distribution, self.constant)) if self.constant else 0.0

    def from_moments(self, distribution: Any, mean: Array, variance: Array) -> Any:
        """The member of this mean; of two parameters, of this variance, too."""
        return distribution.from_mean(np.maximum(mean, np.finfo(float).tiny)[..., None])

    def log_likelihood(self, member: Any, count: Array, total: Array) -> Array:
        """η·total − count A(η), where rows of T = 0 are possible at the edge."""
        eta = np.where(total == 0.0, 0.0, member.natural)
        return np.asarray((eta * total).sum(axis=-1) - count * np.asarray(member.log_normaliser()))

    def log_evidence(self, distribution: Any, imagined: tuple[Array, Array], seen: tuple[Array, Array]) -> Array:
        """ln ∫ p(seen | θ) p(θ | imagined) dθ of each member, but for Σ ln h(x)."""
        prior = self.belief(distribution, *imagined)
        return np.asarray(prior.evidence(distribution.increment(_totals(distribution, *seen)), np.zeros(1)))

    def belief(self, distribution: Any, count: Array, total: Array) -> Any:
        """What is known of the parameters of members side by side after seen and imagined rows, with `mode`, `interval` and
        `sample`: of one parameter the conjugate distribution, without a prior of its own."""
        learned = distribution.increment(_totals(distribution, count, total))
        alpha = learned if isinstance(learned, tuple) else tuple(np.moveaxis(learned, -1, 0))
        if not all((np.asarray(a) > 0.0).all() for a in alpha):
            raise FitError(
                f"the prior of {distribution!r} imagines rows that are all at the edge of what is possible, and is improper: "
                "give imagined rows of another mean, or the conjugate prior itself"
            )
        return PRIORS[distribution.prior](*alpha)


def _totals(distribution: Any, count: Array, total: Array) -> Totals:
    return Totals(distribution, count, total, np.zeros_like(count))


class PoissonKind(NodeKind):
    """Counts with a rate."""

    word, of, whole = "poisson-rate", PoissonCounts, True
    base = ("ln x!", -1.0)

    def imagine_rows(self, distribution: Any, prior: Any) -> tuple[float, Array]:
        return prior.rate, np.array([prior.shape])

    def scipy(self, member: Any) -> Any:
        return st.poisson(member.rate)


class ExponentialKind(NodeKind):
    """Waiting times with a rate."""

    word, of = "exponential", Exponential

    def imagine_rows(self, distribution: Any, prior: Any) -> tuple[float, Array]:
        return prior.shape, np.array([prior.rate])

    def scipy(self, member: Any) -> Any:
        return st.expon(scale=1.0 / np.asarray(member.rate))


class GeometricKind(NodeKind):
    """Failures before the first success."""

    word, of, whole = "geometric", Geometric, True

    def imagine_rows(self, distribution: Any, prior: Any) -> tuple[float, Array]:
        return prior.a, np.array([prior.b])

    def scipy(self, member: Any) -> Any:
        return st.geom(member.p, loc=-1)


class BinomialKind(NodeKind):
    """Successes in a known number of trials."""

    word, of, whole = "binomial", Binomial, True
    base, constant = ("ln C(n, x)", 1.0), "n"

    def from_moments(self, distribution: Any, mean: Array, variance: Array) -> Any:
        n = self.known_number(distribution)
        return distribution.from_mean(np.clip(mean, 1e-9 * n, (1.0 - 1e-9) * n)[..., None])

    def log_likelihood(self, member: Any, count: Array, total: Array) -> Array:
        p, x = np.asarray(member.p), total[..., 0]
        return np.asarray(sc.xlogy(x, p) + sc.xlog1py(member.draws * count - x, -p))

    def imagine_rows(self, distribution: Any, prior: Any) -> tuple[float, Array]:
        return (prior.a + prior.b) / self.known_number(distribution), np.array([prior.a])

    def scipy(self, member: Any) -> Any:
        return st.binom(member.n, member.p)


class NegativeBinomialKind(NodeKind):
    """Failures before a known number of successes."""

    word, of, whole = "negative-binomial", NegativeBinomialKnownSize, True
    base, constant = ("ln C(x + n - 1, x)", 1.0), "size"

    def imagine_rows(self, distribution: Any, prior: Any) -> tuple[float, Array]:
        return prior.a / self.known_number(distribution), np.array([prior.b])

    def scipy(self, member: Any) -> Any:
        return st.nbinom(member.size, member.p)


class PairKind(NodeKind):
    """A distribution of two positive parameters, whose conjugate prior has no closed form."""

    def belief(self, distribution: Any, count: Array, total: Array) -> PairBeliefs:
        each = zip(np.atleast_1d(count), np.atleast_2d(total), strict=True)
        return PairBeliefs(tuple(PairBelief.of(distribution, float(n), t) for n, t in each))

    def log_evidence(self, distribution: Any, imagined: tuple[Array, Array], seen: tuple[Array, Array]) -> Array:
        @cache  # a prior imagines the same in most configurations
        def normaliser(count: float, *total: float) -> float:
            return PairBelief.of(distribution, count, total).log_normaliser

        rows = zip(*imagined, *seen, strict=True)
        return np.array([normaliser(k + n, *(t + s)) - normaliser(k, *t) for k, t, n, s in rows])


class GammaKind(PairKind):
    """Positive numbers, with a shape and a rate."""

    word, of = "gamma", Gamma
    statistic = ("ln x", "x")

    def from_moments(self, distribution: Any, mean: Array, variance: Array) -> Any:
        m, v = np.maximum(mean, np.finfo(float).tiny), np.maximum(variance, 1e-12 * mean * mean)
        return Gamma(m * (m / v), m / v)

    def scipy(self, member: Any) -> Any:
        return st.gamma(member.shape, scale=1.0 / np.asarray(member.rate))


class BetaKind(PairKind):
    """Numbers between 0 and 1, with the parameters a and b."""

    word, of = "beta", Beta
    statistic = ("ln x", "ln(1 - x)")

    def from_moments(self, distribution: Any, mean: Array, variance: Array) -> Any:
        m = np.clip(mean, 1e-12, 1.0 - 1e-12)
        most = m * (1.0 - m)
        strength = most / np.clip(variance, 1e-12 * most, MIDDLE * most) - 1.0
        return Beta(m * strength, (1.0 - m) * strength)

    def scipy(self, member: Any) -> Any:
        return st.beta(member.a, member.b)


def kind_of(distribution: Any) -> NodeKind | None:
    """The kind of a distribution; None where it cannot be a node."""
    return KINDS.get(type(distribution))


def distribution_of(word: str, constants: Mapping[str, float]) -> Any:
    """The distribution of a word, with its known number."""
    kind = find("distributions", word)
    needed = {kind.constant} if kind.constant else set()
    if set(constants) != needed:
        wants = f"needs its {kind.constant}, a known number" if kind.constant else "takes no numbers"
        raise FitError(f"the distribution {word} {wants}: {kind.of.__name__}({f'{kind.constant}=…' if kind.constant else ''})")
    return kind.of(**constants)


@dataclass(frozen=True)
class Conjugate(Prior):
    """A prior of nodes whose distribution was chosen: `count` imagined rows, at each configuration of the parents.

    The imagined rows are, on average, as all rows are; `mean` is a distribution with parameters, as which they are instead, or
    the mean of the statistic T(x) of its exponential family.

    >>> from suffice.exponential import Exponential
    >>> Conjugate(2.0, Exponential(0.5))
    Conjugate(count=2.0, mean=(2.0,))
    """

    worth = "count"
    word = "conjugate"
    types = ("Conjugate",)
    after_colon = ("count", float)

    count: float = 1.0
    mean: Any = None

    def __post_init__(self) -> None:
        check_positive("the count of Conjugate", self.count)
        object.__setattr__(self, "mean", _plain(self.mean))

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> Conjugate:
        chosen = {n: v for n, v in variables.items() if isinstance(v, Distributed)}
        if self.mean is not None and not isinstance(self.mean, Mapping):
            return replace(self, mean=dict.fromkeys(chosen, self.mean))
        mean = dict(self.mean or {})
        for n, v in chosen.items():
            if n not in mean:
                count, total, _ = v.family.sums(v, statistics.answer(v.family.needs(v, [])))
                if not count.sum() > 0:
                    raise FitError(f"there are no values of {n!r} to imagine rows by; give Conjugate its mean")
                mean[n] = tuple((total.sum(axis=0) / count.sum()).tolist())
        return replace(self, mean={n: mean[n] for n in chosen})

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Moments | None:
        if not isinstance(child, Distributed) or not all(isinstance(p, Finite) for p in parents):
            return None
        mean = self.mean[child.name] if isinstance(self.mean, Mapping) else self.mean
        if mean is None:
            raise FitError("Conjugate takes its defaults from data; give its mean, or bind it with statistics first")
        names = child.family.kind.statistic
        if len(mean) != len(names):
            raise FitError(
                f"the mean of Conjugate for {child.name!r}, {child.family!r}, needs {len(names)} numbers, not {mean!r}"
            )
        found: Moments = child.family.imagine_rows(child, parents, self.count, np.array(mean))
        return found


@dataclass(frozen=True)
class ParameterPrior(Prior):
    """A distribution of `suffice.exponential` as the prior of a parameter: Gamma of rates, Beta of probabilities."""

    types = ("ParameterPrior",)

    distribution: str
    parameters: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(float(p) for p in self.parameters))

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> ParameterPrior:
        return cls(d["distribution"] if "distribution" in d else d["word"], d["parameters"])  # as it was called before

    @classmethod
    def of(cls, prior: Any) -> ParameterPrior:
        numbers = [getattr(prior, name) for name in prior.names]
        if any(np.ndim(x) for x in numbers):
            raise FitError(
                f"the prior of a node has single numbers, the same for each configuration of its parents, not {prior!r}"
            )
        return cls(type(prior).__name__, tuple(numbers))

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Moments | None:
        if not isinstance(child, Distributed) or not all(isinstance(p, Finite) for p in parents):
            return None
        chosen = child.family.distribution
        if chosen.prior != self.distribution:
            return None
        count, total = child.family.kind.imagine_rows(chosen, PRIORS[self.distribution](*self.parameters))
        found: Moments = child.family.imagine_rows(child, parents, float(count), np.asarray(total) / count)
        return found


def _plain(mean: Any) -> Any:
    """E[T] as plain numbers, of a distribution that of itself."""
    if mean is None:
        return None
    if isinstance(mean, Mapping):
        return {str(node): _plain(own) for node, own in mean.items()}
    if kind_of(mean) is not None:
        try:
            return tuple(np.asarray(mean.mean_parameters).tolist())
        except ModelError as error:
            raise FitError(f"the mean of Conjugate is a distribution with parameters: {error}") from None
    try:
        return tuple(float(m) for m in np.atleast_1d(np.asarray(mean, dtype=np.float64)))
    except (TypeError, ValueError):
        raise FitError(f"the mean of Conjugate is a distribution, or numbers, not {mean!r}") from None
