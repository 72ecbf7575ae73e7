"""Priors of nodes whose distribution was chosen (`families={"wait": Gamma()}`): imagined rows, or a conjugate prior itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.errors import FitError, ModelError
from suffice.families.chosen.node_kinds import kind_of
from suffice.families.protocol.family import Prior, check_positive
from suffice.statistics import Moments, Statistics
from suffice.variables import Distributed, Finite, Variable

Means = Mapping[str, Sequence[float]] | Sequence[float] | None
"""E[T] of imagined rows: of all nodes, by node, or not given."""


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
        given = self.mean or {}
        return replace(self, mean={n: given[n] if n in given else _overall(v, statistics) for n, v in chosen.items()})

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
        import suffice.exponential as room

        count, total = child.family.kind.imagine_rows(chosen, getattr(room, self.distribution)(*self.parameters))
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


def _overall(variable: Distributed, statistics: Statistics) -> tuple[float, ...]:
    family = variable.family
    count, total, _ = family.sums(variable, statistics.answer(family.needs(variable, [])))
    if not count.sum() > 0:
        raise FitError(f"there are no values of {variable.name!r} to imagine rows by; give Conjugate its mean")
    return tuple((total.sum(axis=0) / count.sum()).tolist())
