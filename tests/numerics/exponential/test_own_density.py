"""A distribution with a density of its own answers nothing with the numbers of the distribution that it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from suffice.errors import ModelError
from suffice.families.chosen.node_kinds import KINDS, ExponentialKind, NodeKind
from suffice.numerics.exponential import Bernoulli, Exponential, ExponentialFamily, Gamma, Poisson

OWN: dict[str, Any] = {
    "mean": property(lambda self: 0.0),
    "variance": property(lambda self: 0.0),
    "entropy": lambda self: 0.0,
    "sample": lambda self, n, seed=0: np.zeros(n),
    "_predictive": ExponentialFamily._predictive,
}


@pytest.mark.parametrize(
    ("parent", "given", "told"),
    [
        (Exponential, ["_log_density"], "mean, variance, sample, entropy, _predictive: what Exponential says follows"),
        (Exponential, ["log_base"], "mean, variance, sample, entropy, _log_density, _predictive: what Exponential says follows"),
        (Exponential, ["_log_density", "mean", "variance", "sample", "entropy"], "_predictive: what Exponential says follows"),
        (Exponential, ["_inside", "_log_density", *OWN], ""),
        (Exponential, [], ""),
        (Poisson, ["_log_density", *OWN], "log_base: what Poisson says follows"),
        (Gamma, ["sufficient"], "mean, variance, mode, interval, sample, entropy, _log_density: what Gamma says follows"),
        (
            Bernoulli,
            ["log_prob"],
            "mean, variance, sample, entropy, log_base, _log_density, _predictive: what Bernoulli says follows",
        ),
    ],
)
def test_a_density_of_its_own_inherits_no_number_of_another(parent: type, given: list[str], told: str) -> None:
    own = {name: OWN.get(name, getattr(parent, name)) for name in given}
    if not told:
        child = type("Own", (parent,), own)
        type("Child", (child,), {})  # whose density is that of its parent
        return
    with pytest.raises(ModelError, match=rf"Own has a density of its own, and must say its own {told}"):
        type("Own", (parent,), own)


def test_what_has_no_formula_says_so() -> None:
    own = type("Own", (Exponential,), OWN | {"_log_density": Exponential._log_density})
    with pytest.raises(ModelError, match="the predictive of Own has no formula; draw parameters from the posterior"):
        own().predictive(Gamma(1.0, 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class Moved(Exponential):
    """Waiting times that begin at 1, for the tests below."""

    mean, variance, entropy, sample, _predictive = OWN.values()

    def _log_density(self, x: Any) -> Any:
        return super()._log_density(np.asarray(x) - 1.0)


@pytest.mark.parametrize(
    ("parent", "given", "told"),
    [
        (ExponentialKind, {}, "Kind must say its own scipy: what it inherits is not that of Moved"),
        (
            ExponentialKind,
            {"statistic": ("ln x",)},
            "Kind must say its own scipy, from_moments: what it inherits is not that of Moved",
        ),
        (
            NodeKind,
            {"statistic": ("ln x",), "scipy": None},
            "Kind must say its own from_moments: what it inherits is not that of Moved",
        ),
        (NodeKind, {}, "Kind must say its own scipy: what it inherits is not that of Moved"),
    ],
)
def test_a_kind_of_another_density_inherits_no_quantiles(parent: type, given: dict[str, Any], told: str) -> None:
    with pytest.raises(ModelError, match=told):
        type("Kind", (parent,), {"of": Moved, "word": "moved", **given})
    assert Moved not in KINDS
