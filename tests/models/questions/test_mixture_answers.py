"""One class of answers about numbers, whatever its parts are."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import suffice as sf
from suffice import exponential as ef
from suffice.families.chosen.exponential_node import ExponentialNode
from suffice.models.questions.densities import DrawnParts, NormalParts, PoissonParts, ResponseParts
from suffice.models.questions.mixture import DistributionParts, Mixture
from suffice.numerics.inference.sampling.sampling import Chained, Weighted

COST = sf.results.RegressionCpd(
    sf.Real("x"), (sf.Finite("ill", ["no", "yes"]),), sf.regressions.GammaLog(), 0.0, [np.log(3.0)], dispersion=0.5
)
STEPS = np.random.default_rng(0).normal(size=(400, 1))
ANSWERS = {
    "normal": Mixture(("x",), [0.25, 0.75], NormalParts([[0.0], [4.0]], [[[1.0]], [[4.0]]])),
    "poisson": Mixture(("x",), [0.25, 0.75], PoissonParts([1.0, 5.0])),
    "response": Mixture(("x",), [0.75, 0.25], ResponseParts(COST, {"ill": np.array([0, 1])}, 2)),
    "weighted": Mixture(("x",), Weighted(STEPS[:, 0] / 4).weights, DrawnParts(STEPS, Weighted(STEPS[:, 0] / 4))),
    "chained": Mixture(("x",), Chained(4, 100).weights, DrawnParts(STEPS, Chained(4, 100))),
}
every = pytest.mark.parametrize("answer", ANSWERS.values(), ids=list(ANSWERS))


@every
def test_draws_have_its_moments_and_quantiles(answer: Mixture) -> None:
    n = 40_000
    drawn = answer.sample(n, seed=1)
    assert drawn.shape == (n,)
    assert abs(drawn.mean() - answer.mean) < 5.0 * answer.sd / np.sqrt(n)
    assert drawn.var() == pytest.approx(answer.variance, rel=0.1)
    assert answer.covariance.tolist() == [[pytest.approx(answer.variance)]]
    low, high = answer.interval(0.9)
    assert np.mean((drawn >= low) & (drawn <= high)) >= 0.88
    assert np.array_equal(answer.sample(n, seed=1), drawn)


@every
def test_quantiles_turn_the_cdf_round(answer: Mixture) -> None:
    shares = np.array([[0.1, 0.5], [0.9, 0.99]])
    ends = answer.quantile(shares)
    assert ends.shape == shares.shape
    assert ends[0, 1] == answer.quantile(0.5)
    assert (answer.cdf(ends) >= shares - 1e-9).all()
    assert answer.quantile(np.zeros(0)).shape == (0,)


@every
def test_answers_survive_a_pickle_read_only(answer: Mixture) -> None:
    again = pickle.loads(pickle.dumps(answer))
    assert repr(again) == repr(answer)
    assert again.to_frame().equals(answer.to_frame())
    assert not again.weights.flags.writeable
    json.dumps(answer.to_dict(), allow_nan=False)


@every
def test_only_draws_have_errors_and_only_densities_a_density(answer: Mixture) -> None:
    if answer.parts.are_draws:
        assert answer.error > 0.0
        assert answer.effective_sample_size > 1.0
        with pytest.raises(sf.SufficeError, match="draws of 'x' have no density"):
            answer.log_prob(0.0)
    else:
        assert answer.error is answer.effective_sample_size is None
        assert answer.density(1.0) == pytest.approx(np.exp(answer.log_prob(1.0)))
    with pytest.raises(sf.SufficeError, match="has no last value"):
        list(answer)


def test_several_targets_are_drawn_together() -> None:
    covariance = np.array([[2.0, 1.2], [1.2, 1.0]])
    answer = Mixture(("x", "y"), [0.5, 0.5], NormalParts([[0.0, 0.0], [4.0, -4.0]], [covariance, covariance]))
    drawn = answer.sample(40_000, seed=0)
    assert np.cov(drawn.T) == pytest.approx(answer.covariance, abs=0.15)
    draws = Mixture(("x", "y"), np.full(2, 0.5), DrawnParts(np.array([[0.0, 5.0], [1.0, 7.0]]), Weighted(np.zeros(2))))
    assert draws.quantile(0.9).tolist() == [1.0, 7.0]
    with pytest.raises(sf.SufficeError, match="a quantile is of one"):
        answer.quantile(0.5)


def test_members_of_a_chosen_distribution_are_mixed() -> None:
    wait = ExponentialNode(ef.Gamma()).variable("wait")
    answer = Mixture("wait", [0.25, 0.75], DistributionParts(wait, np.array([[2.0, 1.0], [3.0, 0.5]])))
    assert repr(answer).splitlines()[0] == "p(wait), exact, Gamma: mean 5, sd 3.536"
    assert repr(answer).splitlines()[1].split() == ["weight", "shape", "rate"]
    assert repr(answer).splitlines()[3].split() == ["0.25", "2", "1"]
    assert answer.interval(0.9) == pytest.approx((0.7656, 11.7978), abs=1e-4)
    assert answer.log_prob(2.0) == pytest.approx(-1.990369, abs=1e-6)


def test_the_lowest_of_normal_numbers_has_no_bound() -> None:
    assert ANSWERS["normal"].quantile(0.0) == -np.inf
