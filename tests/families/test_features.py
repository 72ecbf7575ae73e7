"""Models of features: their scale, features that depend on each other, base measures, names that columns have, too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FitError, ModelError, SchemaError

DIE = sf.Finite("die", range(1, 7))
MEAN = sf.undirected.Features({"mean": lambda x: x}, over=[DIE])
FACES = np.arange(1.0, 7.0)
ROLLS = {"die": [1, 6, 6, 5, 4, 4, 6, 2, 6, 5]}


def rolls() -> sf.Data:
    return sf.scan(ROLLS, variables={"die": DIE})


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e8])
def test_the_scale_of_a_feature_does_not_matter(unit: float) -> None:
    plain = sf.fit(sf.undirected.Features({"mean": lambda x: x}, over=[DIE]), rolls())
    scaled = sf.undirected.Features({"mean": lambda x: unit * x}, over=[DIE])
    for objective in (sf.Likelihood(), sf.PseudoLikelihood(), sf.MaxEntropy()):
        net = sf.fit(scaled, rolls(), objective=objective)
        assert net.query("die").probs == pytest.approx(plain.query("die").probs, abs=1e-7)
        assert net.weights["mean"] * unit == pytest.approx(plain.weights["mean"], abs=1e-6)
    with pytest.raises(FitError, match="does not exist"):
        sf.fit(scaled, sf.scan({"die": [6, 6]}, variables={"die": DIE}))
    squares = sf.undirected.Features({"mean": lambda x: unit * x, "square": lambda x: unit * x * x}, over=[DIE])
    with pytest.raises(FitError, match="together"):
        sf.fit(squares, {"mean": 3.5 * unit, "square": 12.0 * unit}, objective=sf.MaxEntropy())


def test_standard_errors_know_the_base_measure() -> None:
    base = sf.MarkovNet({"die": np.log([0.1, 0.1, 0.1, 0.1, 0.1, 0.5])}, [DIE])
    net = sf.fit(sf.undirected.Features({"mean": lambda x: x}, over=[DIE]), rolls(), objective=sf.MaxEntropy(), base=base)
    p = net.query("die").probs
    variance = p @ FACES**2 - (p @ FACES) ** 2
    assert net.standard_errors["mean"] == pytest.approx((10 * variance) ** -0.5, rel=1e-6)


def test_features_that_depend_on_each_other_are_counted_once_and_have_no_standard_errors() -> None:
    coin = sf.Finite("coin", ["0", "1"])
    within = sf.undirected.Features({"mean": lambda x: x, "twice": lambda x: 2 * x + 1}, over=[DIE])
    across = sf.undirected.Features({"mean": ("die", lambda x: x), "same": (("die", "coin"), lambda x, y: x)}, over=[DIE, coin])
    constant = sf.undirected.Features({"mean": ("die", lambda x: x), "one": ("die", lambda x: 1)}, over=[DIE, coin])
    both = sf.scan({**ROLLS, "coin": list("0110101100")}, variables={"die": DIE, "coin": coin})
    for model in (within, across, constant):
        net = sf.fit(model, both)
        assert net.n_parameters == 1
        with pytest.raises(ModelError, match="not unique"):
            _ = net.standard_errors


def test_a_feature_may_have_the_name_of_its_column() -> None:
    model = sf.undirected.Features({"die": lambda x: x}, over=[DIE])
    assert sf.fit(model, ROLLS).weights["die"] == pytest.approx(sf.fit(model, rolls()).weights["die"])
    assert sf.fit(model, {"die": 4.5}, objective=sf.MaxEntropy()).weights["die"] == pytest.approx(0.3710489381, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sf.undirected.Features({"m": {1: "much"}}, over=[DIE]), FitError, "'m' is not a number at every state"),
        (lambda: sf.undirected.Features({"m": lambda x: x}, over=["die"]), SchemaError, "'die' is no variable"),
        (lambda: sf.undirected.Features({"m": lambda x: x}, over=3), SchemaError, "3 is no variable"),
        (lambda: sf.fit(MEAN, ROLLS, objective=sf.MaxEntropy(), method=sf.methods.IPF()), FitError, "takes no method"),
        (lambda: sf.fit(MEAN, {"mean": 7}, objective=sf.MaxEntropy(0.5)), FitError, "has mean within 0.5 of 7"),
    ],
)  # fmt: skip
def test_refusals(make: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
