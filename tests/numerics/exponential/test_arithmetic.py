"""What the small pieces below distributions say, one case each; the distributions' own suites have them at every size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma

from suffice.errors import DataError, ModelError
from suffice.numerics.exponential import Beta, Dirichlet, Gamma, Normal, Poisson
from suffice.numerics.exponential.arithmetic import special, symmetric, values
from suffice.numerics.exponential.dirichlet import beta_interval, draw_shares, inverse_digamma, others, shares_of
from suffice.numerics.exponential.draws import checked_probs, number_of_states
from suffice.numerics.exponential.normals.lines import ConjugateLines, independent
from suffice.numerics.exponential.pairs import PairBelief
from suffice.numerics.exponential.protocol.observable import generator
from suffice.numerics.exponential.protocol.statistic import weight_of_statistic

SHAPES = np.array([1e-3, 1.0, 1e8])
LINES = ConjugateLines.of(np.array(3.0), np.array(4.0), np.array([1.0, 2.0]), np.array([[4.0, 2.0], [2.0, 3.0]]))
PIECES: dict[str, tuple[Callable[[], Any], Any]] = {
    "stirling_rest": (lambda: special.stirling_rest(1e8) * 12e8, 1.0),
    "log_gamma_step": (lambda: special.log_gamma_step(1e15, 1.0) - np.log(1e15), 0.0),
    "log_minus_digamma": (lambda: special.log_minus_digamma(1e8) * 2e8, 1.0),
    "log_multigamma_step": (lambda: special.log_multigamma_step(3.0, 1.0, 2), np.log(7.5)),
    "log_growth": (lambda: [special.log_growth(1.0, 1e-20) * 1e20, special.log_growth(1e-300, 1e300)], [1.0, 1381.551056]),
    "excess_over_log": (lambda: special.excess_over_log(1e-9) * 2e18, 1.0),
    "ratio_excess": (lambda: [special.ratio_excess(1e-20, 1.0), special.ratio_excess(1 + 1e-9, 1.0) > 0], [45.051702, 1.0]),
    "stirling_divergence": (lambda: special.stirling_divergence(1e9, np.array([1e9, 1.0])), [0.0, 9.942694]),
    "inverse_log_minus_digamma": (
        lambda: special.inverse_log_minus_digamma(special.log_minus_digamma(SHAPES)) / SHAPES,
        [1.0] * 3,
    ),
    "deviance": (lambda: special.deviance([1e8, 0.0, 2.0], [1e8 + 1.0, 2.0, 0.0]) * [1e9, 1, 1], [4.99999997, 2.0, np.inf]),
    "log_poisson": (lambda: special.log_poisson([1e9, 0.0, 1.0], [1e9, 0.0, 0.0]), [-11.28057145, 0.0, -np.inf]),
    "log_binomial": (lambda: special.log_binomial([5e8, 0.0], [1e9, 3.0], [0.5, 0.0], [0.5, 1.0]), [-10.58742427, 0.0]),
    "log_negative_binomial": (lambda: np.exp(special.log_negative_binomial([0.0, 1.0], 2.0, 0.5, 0.5)), [0.25, 0.25]),
    "log_beta": (lambda: special.log_beta([[2.0, 1.0], [2.0, 1e12]]), [-0.69314718, -55.26204223]),
    "log_multinomial": (lambda: np.exp(special.log_multinomial([2.0, 1.0, 1.0])), 12.0),
    "log_polya": (lambda: np.exp(special.log_polya([2.0, 0.0, 0.0], [1.0, 1.0, 1.0])), 1 / 6),
    "log_counts_evidence": (lambda: Beta(1.0, 1.0).evidence(np.array([1e12, 0.0]), np.zeros(())), -27.631021),
    "gamma_ends": (lambda: np.round(np.array(special.gamma_ends(1e8, 0.025)) - 1e8), [-19599, 19601]),
    "student_end": (lambda: special.student_end(3.0, 0.025), 3.182446),
    "lattice": (
        lambda: [part[special.lattice(0.5, 0.5, 2)[1] > 0] for part in special.lattice(0.5, 0.5, 2)],
        [[0, 1, 2], [1, 1, 1]],
    ),
    "scaled_cholesky": (lambda: symmetric.scaled_cholesky(np.array([[4.0, 2.0], [2.0, 2.0]])).log_det, np.log(4.0)),
    "positive": (lambda: symmetric.positive([[2.0, 1.0], [1.0, 2.0]], "the covariance"), [[2.0, 1.0], [1.0, 2.0]]),
    "half": (lambda: symmetric.half([[1.0, 2.0], [2.0, 3.0]]), [1.0, 2.0, 3.0]),
    "whole_of": (lambda: symmetric.whole_of([1.0, 2.0, 3.0], 2), [[1.0, 2.0], [2.0, 3.0]]),
    "off_diagonal_weight": (lambda: symmetric.off_diagonal_weight(2, 2.0), [1.0, 2.0, 1.0]),
    "checked_order": (lambda: symmetric.checked_order(3, (2,), "Normal"), 3),
    "symmetric": (lambda: symmetric.symmetric(2, 2, lambda at: at.sum(axis=1) * 1.0), [[0.0, 1.0], [1.0, 2.0]]),
    "single": (lambda: symmetric.single(np.array(2.5), 3), [[[2.5]]]),
    "of_odds": (lambda: symmetric.of_odds(np.array(0.25), np.array(0.75), 2), 0.09375),
    "eulerian": (lambda: [symmetric.eulerian(4, j) for j in range(4)], [1.0, 11.0, 11.0, 1.0]),
    "numbers": (lambda: values.numbers([1, 2], "the rate"), [1.0, 2.0]),
    "between": (lambda: values.between(0.5, "p", 0, 1), 0.5),
    "natural_numbers": (lambda: values.natural_numbers(3, "n", 0), 3.0),
    "finite": (lambda: values.finite(-2, "the mean of Normal"), -2.0),
    "vectors": (lambda: values.vectors(2.0, "η of Exponential", 1), [2.0]),
    "components": (lambda: values.components([2, 0], 3), [2, 0]),
    "observations": (lambda: values.observations([0, 3], "Poisson"), [0.0, 3.0]),
    "counts": (lambda: values.counts([2, -1, 0.5], "Poisson"), [[2, 0, 0], [1, 0, 0]]),
    "checked_weights": (
        lambda: [values.checked_weights([1, 2], (2, 3)).shape, values.checked_weights(None, (2,))],
        [[2, 3], [1, 1]],
    ),
    "broadcast": (lambda: values.broadcast("Normal", mean=np.zeros(2), variance=np.array(1.0))[1], [1.0, 1.0]),
    "tail": (lambda: values.tail(0.5), 0.25),
    "plain": (lambda: values.plain(np.array([2.5])), [2.5]),
    "weight_of_statistic": (lambda: weight_of_statistic(2, ()), 2.0),
    "checked_probs": (lambda: checked_probs([0.25, 0.75], "probs"), [0.25, 0.75]),
    "shares_of": (lambda: shares_of(np.array([[3.0, 1.0], [0.0, 0.0]])), [[0.75, 0.25], [0.5, 0.5]]),
    "others": (lambda: others(np.array([1e20, 1.0, 2.0])), [3.0, 1e20, 1e20]),
    "beta_interval": (lambda: beta_interval(np.array([1.0, 0, 2]), np.array([1.0, 1, 0]), 0.5), [[0.25, 0, 1], [0.75, 0, 1]]),
    "from_log_means": (lambda: Dirichlet().from_mean(digamma([0.5, 2.0, 3.0]) - digamma(5.5)).alpha, [0.5, 2.0, 3.0]),
    "inverse_digamma": (lambda: inverse_digamma(digamma(SHAPES)) / SHAPES, [1.0] * 3),
    "log_gamma_peak": (lambda: special.log_gamma_peak(1.0), -1.0),
    "log_poisson_peak": (lambda: special.log_poisson_peak(np.array([0.0, 1.0, 1e9])), [0.0, -1.0, -11.28057145]),
    "independent": (lambda: independent(np.array([[1.0, 2, 0], [2, 4, 0], [0, 0, 1]]), "y"), [True, False, True]),
    "intercept": (lambda: LINES.intercept, 1.5),
    "interval of a slope": (lambda: LINES.interval(0.5)["coefficients"].upper, [0.76190]),
    "a pair": (lambda: PairBelief.of(Gamma(), 20.0, np.array([10.0, 40.0])).mode, [2.744, 1.372]),
    "interval of a pair": (lambda: PairBelief.of(Gamma(), 20.0, np.array([10.0, 40.0])).interval(0, 0.025), [1.66, 5.08]),
}


@pytest.mark.parametrize("name", PIECES)
def test_a_piece(name: str) -> None:
    call, expected = PIECES[name]
    rel = 5e-3 if "pair" in name else 1e-4 if "slope" in name else 1e-7
    np.testing.assert_allclose(np.asarray(call(), float), np.asarray(expected, float), rtol=rel, atol=1e-12)


def test_what_parameters_look_like() -> None:
    assert values.show(2.5) == "2.5"
    assert values.show(np.array([0.25, 0.75])) == "[0.25, 0.75]"
    assert values.show(np.zeros((100, 2))) == "<array of shape (100, 2)>"
    assert [type(f(np.array(2.5))) for f in (values.plain, values.hold)] == [float, float]
    assert values.same(np.array([1.0]), np.array([1.0]))
    assert not values.same(None, 1.0)
    assert number_of_states([0.5, 0.5], None, "Categorical")[0] == 2
    assert values.table({"mean": np.array([0.25, 0.75]), "n": 3}, "Categorical", ["a", "b"]).count("<td>") == 6
    assert values.summary(Beta(2.0, 2.0), {"a": 2.0, "b": 2.0}, "Beta").count("<tr>") == 8
    assert str(values.Outside("Poisson is about whole numbers, and", 2, "is -1")).endswith("and row 3 is -1")


def test_shares_without_weight_stay_0() -> None:
    p = draw_shares(np.array([[1e-4, 1e-4, 0.0], [50.0, 50.0, 0.0]]), 2, np.random.default_rng(0))
    assert p.sum(axis=2).round(12).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert p[:, :, 2].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_draws_are_those_of_their_seed() -> None:
    assert generator(3, 0).integers(10, size=3).tolist() == [8, 6, 5]


def test_what_was_not_scanned_is_refused_with_the_call_that_is_right() -> None:
    with pytest.raises(DataError, match=r"scan gives: ef\.Normal\(\)\.gather\(sf\.scan\('rows\.csv'\), 'x'\); not str"):
        Normal().gather("rows.csv", "x")
    with pytest.raises(DataError, match=r"ef\.Poisson\(\)\.gather\(sf\.scan\(rows\), 'x'\); not dict"):
        Poisson().gather({"x": [1]}, "x")


def test_shapes_that_do_not_fit_are_told_in_words() -> None:
    with pytest.raises(ModelError, match=r"does not fit together: Poisson of \(2,\) and numbers of \(3,\)"):
        Poisson([1.0, 2.0]).log_prob([1, 2, 3])
