"""Laws of conditional distributions: what learners and questions ask of each of them, whatever its class."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.basis.registry import every as registered
from suffice.engines.engine import add_up
from suffice.families.categorical import Table
from suffice.families.chosen.exponential_node import ExponentialCpd, ExponentialNode
from suffice.families.chosen.node_kinds import distribution_of
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.protocol.cpd import Cpd
from tests.toy_engine import leaves

REGRESSIONS, CPDS = registered("regressions"), registered("cpds")
U, V, X = sf.Finite("u", ["a", "b"]), sf.Finite("v", ["p", "q", "r"]), sf.Real("x")
Y, N, S = sf.Real("y"), sf.Count("n"), sf.Finite("s", ["low", "mid", "high"])
T = sf.Count("t")
RNG = np.random.default_rng(7)
CHILDREN: dict[type, Any] = {sf.Real: Y, sf.Count: N, sf.Finite: S}


def regression(word: str) -> Cpd:
    """One of each family of regressions."""
    family = REGRESSIONS[word](**({"trials": "t"} if word == "binomial" else {}))
    child = sf.Finite("s", ["no", "yes"]) if word == "probit" else CHILDREN[family.kind]
    parents = (U, X, *([T] if family.trials else []))
    layout = family.layout(child, 2)
    theta = RNG.normal(0.5, 0.1, layout.size)
    theta[layout.levels] = np.sort(theta[layout.levels])
    return family.cpd(child, parents, theta, 0.5 if family.dispersed or family.profiled else 1.0)


def distribution(word: str) -> Cpd:
    """One of each distribution that may be chosen; all of their parameters may be between 0 and 1."""
    family = ExponentialNode(distribution_of(word, {"binomial": {"n": 9}, "negative-binomial": {"size": 2.5}}.get(word, {})))
    return ExponentialCpd(family.variable("d"), (U, V), RNG.uniform(0.2, 0.7, (2, 3, len(family.names))))


EVERY: dict[str, Any] = {
    "table": Table(S, (U, V), RNG.dirichlet(np.ones(3), (2, 3))),
    "gaussian": ConditionalGaussian(Y, (U, X), RNG.normal(size=2), RNG.normal(size=(2, 1)), RNG.gamma(2.0, size=2)),
    "poisson": sf.results.PoissonRates(N, (V,), RNG.gamma(2.0, size=3)),
    **{f"{word} regression": regression(word) for word in REGRESSIONS},
    **{word: distribution(word) for word in registered("distributions")},
}
every = pytest.mark.parametrize("cpd", EVERY.values(), ids=list(EVERY))


def rows(cpd: Any, n: int = 50) -> dict[str, Any]:
    """Rows of the parents, and a draw of the child."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        p.name: rng.integers(0, p.n_states, n) if isinstance(p, sf.Finite) else rng.integers(1, 9, n) / (1 if p is T else 4)
        for p in cpd.parent_variables
    }
    return {**columns, cpd.child.name: cpd.draw(columns, rng, n)}


def test_every_kind_is_here() -> None:
    assert {cpd.to_dict()["type"] for cpd in EVERY.values()} == set(CPDS)


@every
def test_files_keep_every_digit(cpd: Any) -> None:
    text = json.loads(json.dumps(cpd.to_dict(), allow_nan=False))
    again = CPDS[text["type"]].from_dict(text, cpd.child, cpd.parent_variables, None, None)
    assert again.same(cpd)
    assert np.array_equal(again.log_prob(rows(cpd)), cpd.log_prob(rows(cpd)))


@every
def test_parameters_free_of_bounds_lead_back(cpd: Any) -> None:
    again = cpd.with_parts(cpd.free_parts())
    columns = rows(cpd)
    assert again.log_prob(columns) == pytest.approx(cpd.log_prob(columns), rel=1e-12)
    assert cpd.like(again).log_prob(columns) == pytest.approx(cpd.log_prob(columns), rel=1e-12)


@every
def test_the_order_of_parents_changes_nothing(cpd: Any) -> None:
    turned = cpd.reorder(cpd.parents[::-1])
    assert turned.parents == cpd.parents[::-1]
    assert turned.same(cpd)
    assert turned.log_prob(rows(cpd)) == pytest.approx(cpd.log_prob(rows(cpd)), rel=1e-12)


@every
def test_a_state_of_a_parent_is_a_column_of_it(cpd: Any) -> None:
    parent = cpd.finite_parents[0]
    columns = rows(cpd)
    for state in range(parent.n_states):
        whole = cpd.log_prob({**columns, parent.name: np.full(50, state)})
        assert cpd.log_prob_at(parent.name, state, columns, 50) == pytest.approx(whole, rel=1e-12)
        assert {len(part) for part in cpd.by_states(parent.name)} == {parent.n_states}


@every
def test_nothing_is_undefined_moved_apart_it_is_another(cpd: Any) -> None:
    assert not cpd.undefined.any()
    assert cpd.undefined.shape == tuple(p.n_states for p in cpd.finite_parents)
    other = cpd.perturb(cpd.finite_parents[0].name, np.random.default_rng(0))
    assert not other.same(cpd)
    if cpd.arrays:
        assert other.keep_old(cpd, np.zeros(cpd.undefined.size, bool)).same(cpd)
        assert other.keep_old(cpd, np.ones(cpd.undefined.size, bool)).same(other)


@pytest.mark.parametrize("word", REGRESSIONS)
def test_sums_of_regressions_add_and_weights_repeat(word: str) -> None:
    cpd: Any = EVERY[f"{word} regression"]
    step, columns, times = cpd.family.step, rows(cpd, 40), np.random.default_rng(3).integers(1, 4, 40)

    def some(part: slice) -> Any:
        return step(cpd, {n: c[part] for n, c in columns.items()}, times[part])

    whole = some(slice(None))
    repeated = step(cpd, {n: np.repeat(c, times) for n, c in columns.items()}, None)
    if word == "logistic":
        repeated = repeated._replace(powers=whole.powers)  # of rows, whatever their weights
    for other in (repeated, *(add_up(some(slice(0, cut)), some(slice(cut, None))) for cut in (0, 1, 9, 39))):
        for a, b in zip(leaves(other), leaves(whole), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_draws_of_parameters_have_the_means_of_the_posterior() -> None:
    data = {"u": list("aabbb") * 8, "y": [0.5, 1.5, 4.0, 5.0, 6.5] * 8, "n": [1, 2, 0, 4, 3] * 8}
    rows = sf.scan(data, variables={"n": N})
    prior = (sf.Dirichlet(1), sf.NormalInverseGamma(), sf.priors.Gamma())
    bn = sf.fit("u -> y; u -> n", rows, prior=prior)
    for name, array in (("u", "probs"), ("y", "intercept"), ("n", "rates")):
        drawn = np.array([getattr(cpd, array) for cpd in bn[name].redraw(4000, np.random.default_rng(0))])
        assert drawn.mean(axis=0) == pytest.approx(getattr(bn[name], array), abs=5.0 * drawn.std(axis=0).max() / np.sqrt(4000))


def test_every_kind_prints_as_a_table() -> None:
    """A dataclass that forgets `repr=False` would print all of its arrays instead."""
    from suffice.families.hierarchical.random_effects import MixedGaussian

    def kinds(of: type) -> list[type]:
        return [of, *(k for sub in of.__subclasses__() for k in kinds(sub))]

    every_kind = kinds(Cpd)
    assert MixedGaussian in every_kind
    assert not [k.__name__ for k in every_kind if "__repr__" in vars(k) and k is not Cpd]
