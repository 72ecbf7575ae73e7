"""Laws that every family obeys, with every prior that speaks for it. A new family or prior is one more line in CASES."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.families import family_of
from suffice.families.by_hand import Rates
from suffice.families.priors.priors import PriorsByNode
from tests.oracles import random_rows

VARIABLES = {"u": ["a", "b"], "w": ["p", "q", "r"], "n": sf.Count}
PRIOR_NETWORK = sf.BayesNet(
    "u -> w",
    {"u": [0.3, 0.7], "w": [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]]},
    [sf.Finite("u", ["a", "b"]), sf.Finite("w", ["p", "q", "r"])],
)
TABLE, LINEAR, CONDITIONAL, RATES = ("w", ["u"]), ("z", ["x", "y"]), ("z", ["w", "x"]), ("n", ["u", "w"])
every = pytest.mark.parametrize("family", [TABLE, LINEAR, CONDITIONAL, RATES])
CASES: list[tuple[tuple[str, list[str]], Any]] = [
    (TABLE, sf.Dirichlet(0.5)),
    (TABLE, sf.K2()),
    (TABLE, sf.BDeu(3)),
    (TABLE, sf.BDe(PRIOR_NETWORK, 4)),
    (TABLE, PriorsByNode({"w": [0.5, 2.0, 3.0]})),
    (TABLE, PriorsByNode({"w": [[9.0, 1.0, 0.5], [1.0, 2.0, 3.0]]})),
    (LINEAR, sf.NormalInverseGamma()),
    (LINEAR, sf.NormalInverseGamma(count=2.0, df=5.0, mean=0.0, variance=2.0)),
    (LINEAR, sf.BGe()),
    (CONDITIONAL, sf.NormalInverseGamma()),
    (CONDITIONAL, sf.BGe(count=0.5)),
    (RATES, sf.priors.Gamma()),
    (RATES, sf.priors.Gamma(0.3)),
    (RATES, sf.priors.Gamma(2.0, 0.5)),
]
OTHERS = (sf.BDeu(1), sf.NormalInverseGamma(), sf.priors.Gamma())
"""Of the nodes that the prior of a case says nothing about."""
seeds = st.integers(0, 2**32 - 1)


def table(seed: int, n: int) -> dict[str, Any]:
    """Rows of finite and real columns, and counts by the finite ones."""
    own = random_rows(seed, n)
    return {**own, "n": np.random.default_rng(seed).poisson(0.2 + (own["u"] == "b") * (4.0 + (own["w"] == "q")))}


def rows(seed: int, n: int = 60) -> sf.Data:
    return sf.scan(table(seed, n), variables=VARIABLES)


def parts(family: tuple[str, list[str]], data: sf.Data, prior: Any) -> tuple[Any, ...]:
    child, parents = family
    dag = sf.Dag({child: parents})
    s = sf.gather(data, dag)
    v = s.variables
    bound = prior.bind({n: v[n] for n in dag.nodes}, s)
    kind = family_of(v[child], [v[p] for p in parents])
    return kind, v[child], [v[p] for p in parents], s.answer(kind.needs(v[child], [v[p] for p in parents])), bound


@pytest.mark.parametrize(("family", "prior"), CASES)
@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_evidence_obeys_the_chain_rule(family: Any, prior: Any, seed: int) -> None:
    """evidence(a + b | π) = evidence(a | π) + evidence(b | π + a)."""
    kind, child, parents, a, bound = parts(family, rows(seed, 40), prior)
    b = parts(family, rows(seed + 1, 25), prior)[3]
    imagined = bound.imagine(child, parents)
    together = kind.log_evidence(child, a + b, imagined)
    in_turn = kind.log_evidence(child, a, imagined) + kind.log_evidence(child, b, imagined + a)
    assert together == pytest.approx(in_turn, rel=1e-9, abs=1e-7)


@pytest.mark.parametrize(("family", "prior"), CASES)
def test_evidence_of_a_row_is_its_predictive(family: Any, prior: Any) -> None:
    """evidence(one more row | π + a) = ln p(row | a): the predictive is a ratio of evidences."""
    kind, child, parents, a, bound = parts(family, rows(1, 40), prior)
    posterior = bound.imagine(child, parents) + a
    cpd = kind.estimate(child, parents, a, bound.imagine(child, parents), sf.Mean())
    for seed in range(2, 8):
        new = {name: column[0] for name, column in table(seed, 1).items()}
        b = parts(family, rows(seed, 1), prior)[3]
        p = cpd.predictive({parent.name: new[parent.name] for parent in parents})
        value = new[child.name]
        expected = np.log(p[child.code(value)]) if isinstance(child, sf.Finite) else p.log_prob(float(value))
        assert kind.log_evidence(child, b, posterior) == pytest.approx(expected, rel=1e-8)


@every
@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_rows_and_statistic_give_the_same_likelihood(family: Any, seed: int) -> None:
    child, parents = family
    data = rows(seed)
    bn = sf.fit({child: parents}, data)
    assert bn.log_prob(data).sum() == pytest.approx(bn.log_likelihood(data), rel=1e-10)
    assert bn.log_likelihood() == pytest.approx(sf.score(bn.dag, data, sf.LogLikelihood()), rel=1e-10)


@every
@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_the_estimate_is_a_maximum(family: Any, seed: int) -> None:
    """Any small step from the maximum likelihood estimate lowers the likelihood."""
    child, parents = family
    data = rows(seed)
    bn = sf.fit({child: parents}, data)
    rng = np.random.default_rng(seed)
    cpd = bn[child]
    if isinstance(bn.variables[child], sf.Finite):
        moved = cpd.probs * np.exp(0.01 * rng.standard_normal(cpd.probs.shape))
        other: Any = moved / moved.sum(-1, keepdims=True)
    elif isinstance(bn.variables[child], sf.Count):
        moved = cpd.rates * np.exp(0.01 * rng.standard_normal(cpd.rates.shape)) + 1e-4
        other = Rates(np.where(np.isnan(moved), 1.0, moved))
    else:
        k = cpd.coefficients.shape[-1]
        step = 0.01 * rng.standard_normal(k)
        other = sf.Gaussian(
            cpd.intercept + 0.01 * rng.standard_normal(),
            {n: cpd.coefficients[..., i] + step[i] for i, n in enumerate(cpd.real_parents)},
            cpd.variance * np.exp(0.01 * rng.standard_normal()),
        )
    cpds = {n: bn[n] for n in bn if n != child}
    assert sf.BayesNet(bn.dag, {**cpds, child: other}, bn.variables).log_likelihood(data) < bn.log_likelihood(data)


@pytest.mark.parametrize(("family", "prior"), CASES)
def test_updating_is_fitting_on_everything(family: Any, prior: Any) -> None:
    child, parents = family
    a, b = table(3, 50), table(4, 30)
    both = {k: np.concatenate([a[k], b[k]]) for k in a}
    first = sf.fit({child: parents}, sf.scan(a, variables=VARIABLES), prior=[prior, *OTHERS])
    updated = first.update(sf.scan(b, variables=VARIABLES))
    whole = sf.fit({child: parents}, sf.scan(both, variables=VARIABLES), prior=first.prior)
    for n in whole:
        for name in ("probs", "intercept", "coefficients", "variance", "rates"):
            if hasattr(whole[n], name):
                assert getattr(updated[n], name) == pytest.approx(getattr(whole[n], name), rel=1e-9)
    assert updated.log_likelihood() == pytest.approx(whole.log_likelihood(), rel=1e-9)


@every
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_weights_are_repeated_rows(family: Any, seed: int) -> None:
    child, parents = family
    data = table(seed, 40)
    w = np.random.default_rng(seed).integers(0, 4, 40) + (np.arange(40) < 20)
    repeated = {k: np.repeat(v, w) for k, v in data.items()}
    weighted = sf.scan({**data, "weight": w.astype(float)}, variables=VARIABLES, weights="weight")
    for score in (sf.BIC(), sf.Evidence((sf.BDeu(1), sf.BGe(), sf.priors.Gamma()))):
        a, b = (score_or_refusal({child: parents}, d, score) for d in (weighted, sf.scan(repeated, variables=VARIABLES)))
        assert a == (b if isinstance(b, str) else pytest.approx(b, rel=1e-9))


def score_or_refusal(dag: Any, data: Any, score: Any) -> float | str:
    try:
        return sf.score(dag, data, score)
    except sf.SufficeError as error:
        return str(error)


@pytest.mark.parametrize(("family", "prior"), CASES)
def test_intervals_hold_the_point_value(family: Any, prior: Any) -> None:
    kind, child, parents, seen, bound = parts(family, rows(5, 200), prior)
    cpd = kind.estimate(child, parents, seen, bound.imagine(child, parents), sf.Mean())
    intervals = cpd.interval(0.99)
    if not isinstance(child, sf.Real):
        point = cpd.probs if isinstance(child, sf.Finite) else cpd.rates
        assert np.all((intervals.lower <= point) & (point <= intervals.upper))
        assert np.all(intervals.upper - intervals.lower <= cpd.interval(0.999).upper - cpd.interval(0.999).lower)
        return
    for name, (lower, upper) in intervals.items():
        assert np.all((lower <= getattr(cpd, name)) & (getattr(cpd, name) <= upper))
