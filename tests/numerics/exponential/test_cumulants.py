"""Cumulants of exponential families where a formula is easily wrong: rare states, many components, high orders, large arrays."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.errors import FitError, ModelError, TooLarge
from suffice.numerics.exponential import (
    Bernoulli,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Geometric,
    MultivariateNormal,
    Normal,
    Poisson,
)


def by_states(p, order):
    """The cumulants of the indicators of all states but the last, by the moment generating function's recursion in logs."""
    k = len(p) - 1
    central = np.eye(k, k + 1).T - p[:-1]
    third = np.einsum("n,ni,nj,nk->ijk", p, *[central] * 3)
    if order == 3:
        return third
    V = np.einsum("n,ni,nj->ij", p, central, central)
    pairs = sum(np.einsum(f"{a},{b}->ijkl", V, V) for a, b in (("ij", "kl"), ("ik", "jl"), ("il", "jk")))
    return np.einsum("n,ni,nj,nk,nl->ijkl", p, *[central] * 4) - pairs


@pytest.mark.parametrize("p", [[0.1, 0.6, 0.3], [0.05, 0.05, 0.2, 0.7], [0.5, 0.25, 0.25], [0.97, 0.01, 0.015, 0.005]])
@pytest.mark.parametrize("order", [3, 4])
def test_states(p, order):
    assert Categorical(p).cumulants(order) == pytest.approx(by_states(np.array(p), order), rel=1e-10, abs=1e-13)


def test_a_state_that_is_nearly_certain_keeps_its_digits():
    """κ of a state of 1 − q and of q differ in sign only where the order is odd: the digits of q are those of κ."""
    q = 1e-12
    rare, sure = Categorical([q, 1.0 - q]).cumulants(5).item(), Categorical([1.0 - q, q]).cumulants(5).item()
    assert rare == pytest.approx(q, rel=1e-10)
    assert sure == pytest.approx(-rare, rel=1e-10)
    three = Categorical([1.0 - 2 * q, q, q]).cumulants(4)
    assert three[0, 0, 0, 0] == pytest.approx(2 * q, rel=1e-10)
    assert three[0, 0, 0, 1] == pytest.approx(-q, rel=1e-10)
    assert three[1, 1, 1, 1] == pytest.approx(q, rel=1e-10)


def test_impossible_and_certain_states():
    assert Bernoulli(0.0).cumulants(4).item() == 0.0
    assert Categorical([0.0, 1.0, 0.0]).cumulants(3) == pytest.approx(np.zeros((2, 2, 2)))
    assert Poisson(0.0).cumulants(6).item() == 0.0


def test_cumulants_of_independent_sums_add():
    assert Binomial(7, 0.2).cumulants(6) == pytest.approx(7 * Bernoulli(0.2).cumulants(6))
    assert Binomial([7, 3], [0.2, 0.5]).cumulants(3).shape == (2, 1, 1, 1)


def test_orders_that_are_high():
    assert Exponential(1.0).cumulants(20).item() == pytest.approx(121645100408832000.0)
    assert Geometric(0.5).cumulants(8).item() == pytest.approx(94586, rel=1e-12)  # 2 × the Fubini numbers' 47293
    assert Normal(0.0, 1.0).cumulants(9)[(1,) * 9] == pytest.approx(2.0**8 * 40320)
    assert Poisson(3.0).cumulants(32).item() == 3.0


def test_three_components_are_their_margins():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    normal = MultivariateNormal(rng.normal(size=3), root @ root.T + np.eye(3))
    some = [0, 2]
    index = [0, 2, 3, 5, 8]  # x0, x2, x0², x0 x2, x2² among x0 x1 x2, 00 01 02 11 12 22
    assert normal.cumulants(4)[np.ix_(*[index] * 4)] == pytest.approx(normal.marginal(some).cumulants(4), rel=1e-10)
    one = normal.marginal([1])
    assert one.cumulants(5) == pytest.approx(Normal(one.mean[0], one.covariance[0, 0]).cumulants(5), rel=1e-10)


def test_orders_that_are_none_and_arrays_that_are_too_large():
    for wrong in (0, -1, 1.5, True, "3"):
        with pytest.raises(FitError, match="the order of cumulants is a whole number of at least 1"):
            Poisson(2.0).cumulants(wrong)
    with pytest.raises(ModelError, match="at most 32 here"):
        Poisson(2.0).cumulants(33)
    with pytest.raises(ModelError, match="at most 31 here"):
        Poisson([2.0, 3.0]).cumulants(32)
    with pytest.raises(TooLarge, match=r"100\^5 numbers"):
        Dirichlet(np.ones(100)).cumulants(5)
    with pytest.raises(TooLarge, match="MultivariateNormal of order 9"):
        MultivariateNormal(np.zeros(3), np.eye(3)).cumulants(9)
    with pytest.raises(ModelError, match="estimate"):
        Poisson().cumulants(3)
