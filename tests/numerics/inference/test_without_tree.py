"""Objectives of undirected models that need no junction tree: pseudo-likelihood and contrastive divergence."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import suffice as sf
from suffice.basis.variables import Finite
from suffice.engines.data import Data
from suffice.errors import FitError, StatisticsError, TooLarge
from suffice.learning.undirected import without_tree
from suffice.learning.undirected.without_tree import PseudoStep, blankets_of, pseudo_sums
from suffice.models.undirected.factor import Terms
from suffice.models.undirected.without_tree import near_net
from suffice.numerics.inference.sampling.blankets import Blankets, LocalTables

MODELS: dict[str, Any] = {
    "Ising": sf.Ising("a -- b -- c; a -- c; c -- d"),
    "Pairwise": sf.Pairwise("a -- e -- c; a -- c; e -- f; c -- f"),
    "LogLinear": sf.LogLinear([("a", "b", "e"), ("b", "c"), ("c", "e", "f")]),
    "lone node": sf.Pairwise(sf.Graph("a -- b; e")),
}
STATES = {"a": 2, "b": 2, "c": 2, "d": 2, "e": 3, "f": 4}


def rows(n: int = 400, seed: int = 0) -> dict[str, Any]:
    """Columns that hang together."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    drawn = {name: np.floor(k / (1 + np.exp(-0.7 * z - rng.normal(size=n)))).astype(int) for name, k in STATES.items()}
    return {name: np.array([f"{name}{i}" for i in range(9)])[codes] for name, codes in drawn.items()}


def terms_of(model: Any, data: Data) -> Terms:
    return Terms.of(model, model.finite_variables(data.schema))


def pseudo_by_hand(terms: Terms, codes: np.ndarray, w: np.ndarray) -> float:
    """Σ ln p(node | the others), every state of every node in every row tried."""
    tables = terms.tables(terms.log_tables(w))
    number = {n: i for i, n in enumerate(terms.names)}

    def log_weight(row: np.ndarray) -> float:
        return sum(float(t[tuple(row[[number[n] for n in s]])]) for s, t in zip(terms.scopes, tables, strict=True))

    total = 0.0
    for row in codes:
        for i, k in enumerate(terms.sizes):
            others = [log_weight(np.where(np.arange(len(row)) == i, x, row)) for x in range(k)]
            total += others[row[i]] - float(np.logaddexp.reduce(others))
    return total


def codes_of(terms: Terms, table: dict[str, Any]) -> np.ndarray:
    return np.array(
        [
            [terms.variables[n].code(s) for n, s in zip(terms.names, row, strict=True)]
            for row in zip(*(table[n] for n in terms.names), strict=True)
        ]
    )


@pytest.mark.parametrize("name", MODELS)
def test_the_pseudo_likelihood_is_that_of_each_node_given_the_others(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, model = rows(25), MODELS[name]
    data = sf.scan(rows(400))
    terms = terms_of(model, data)
    part = sf.scan({n: table[n] for n in terms.names}, terms.variables)
    w = np.random.default_rng(1).normal(size=terms.n_weights)
    by_hand = pseudo_by_hand(terms, codes_of(terms, table), w)
    value, gradient = pseudo_sums(terms, part)(terms.log_tables(w))
    assert value == pytest.approx(by_hand)
    monkeypatch.setattr(without_tree, "MAX_CELLS", 0)
    folded, other = pseudo_sums(terms, part)(terms.log_tables(w))
    assert folded == pytest.approx(by_hand)
    assert other == pytest.approx(gradient)
    for j in np.random.default_rng(2).choice(terms.n_weights, 4):
        step = np.where(np.arange(terms.n_weights) == j, 1e-5, 0.0)
        up, down = (pseudo_sums(terms, part)(terms.log_tables(w + s))[0] for s in (step, -step))
        assert terms.by_weight(gradient)[j] == pytest.approx((up - down) / 2e-5, abs=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_the_optimum_is_that_of_another_optimiser(name: str) -> None:
    model, table = MODELS[name], rows(2000)
    data = sf.scan({n: table[n] for n in model.nodes})
    net = sf.fit(model, data, objective=sf.PseudoLikelihood(), penalty=sf.L2(0.5))
    terms, c = net.terms, 0.5
    sums = pseudo_sums(terms, data)

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, by_cell = sums(terms.log_tables(w))
        return -value + c * float(w @ w), -terms.by_weight(by_cell) + 2 * c * w

    found = minimize(loss, np.zeros(terms.n_weights), jac=True, method="BFGS", options={"gtol": 1e-6})
    own = np.concatenate([net.weights[t.scope].reshape(-1) for t in terms.terms])
    assert own == pytest.approx(found.x, abs=1e-4)
    assert "pseudo-likelihood" in net.fit_info or "L2(0.5)" in net.fit_info


def grid(n: int, m: int) -> tuple[list[str], list[tuple[str, str]]]:
    names = [f"s{r:03d}_{c:03d}" for r in range(n) for c in range(m)]
    across = [(names[m * r + c], names[m * r + c + 1]) for r in range(n) for c in range(m - 1)]
    return names, across + [(names[m * r + c], names[m * r + c + m]) for r in range(n - 1) for c in range(m)]


@pytest.fixture(scope="module")
def golden() -> tuple[Any, Data]:
    """The 3 × 3 Ising model of the issue: all 512 states, with weights."""
    names, edges = grid(3, 3)
    k = np.arange(512)
    bits = (k[:, None] >> np.arange(8, -1, -1)) & 1
    weights = 1 + (37 * k + 11) % 101 + 40 * (np.abs((2 * bits - 1).sum(axis=1)) >= 5)
    assert weights.sum() == 29791
    table = {n: bits[:, i].astype(bool) for i, n in enumerate(names)}
    return sf.Ising(sf.Graph(edges)), sf.scan(table, weights=weights.astype(float))


def test_pseudo_likelihood_of_an_ising_grid(golden: tuple[Any, Data]) -> None:
    model, data = golden
    net = sf.fit(model, data, objective=sf.PseudoLikelihood())
    terms = net.terms
    w = np.concatenate([net.weights[t.scope] for t in terms.terms])
    value, gradient = pseudo_sums(terms, data)(terms.log_tables(w))
    assert value / 29791 == pytest.approx(-6.222193974251, abs=1e-11)
    assert net.couplings["s000_000", "s000_001"] == pytest.approx(0.03950445, abs=1e-7)
    assert np.abs(terms.by_weight(gradient)).max() / 29791 < 1e-7
    assert net.objective == sf.PseudoLikelihood()


def test_l1_makes_couplings_zero(golden: tuple[Any, Data]) -> None:
    model, data = golden
    net = sf.fit(model, data, objective=sf.PseudoLikelihood(), penalty=sf.L1(2000.0))
    all_zero = sf.fit(model, data, objective=sf.PseudoLikelihood(), penalty=sf.L1(1e5))
    assert 0 < sum(j == 0.0 for j in net.couplings.values()) < 12
    assert set(all_zero.couplings.values()) == {0.0}


def test_a_complete_table_has_the_likelihoods_optimum() -> None:
    """With all terms there are, both are the shares of the rows."""
    table = rows(3000)
    data = sf.scan({n: table[n] for n in "abc"})
    model = sf.LogLinear([("a", "b", "c")])
    by_pseudo = sf.fit(model, data, objective=sf.PseudoLikelihood())
    exact = sf.fit(model, data)
    assert by_pseudo.query(["a", "b", "c"]).probs == pytest.approx(exact.query(["a", "b", "c"]).probs, abs=1e-6)


def test_statistics_are_enough_where_they_have_the_tables() -> None:
    table = rows(500)
    data = sf.scan({n: table[n] for n in "abcd"})
    model = MODELS["Ising"]
    all_of_them = data.gather([sf.Request(("a", "b", "c", "d"))])
    here = sf.fit(model, data, objective=sf.PseudoLikelihood())
    assert sf.fit(model, all_of_them, objective=sf.PseudoLikelihood()).couplings == pytest.approx(here.couplings)
    assert sf.fit(model, all_of_them, objective=sf.ContrastiveDivergence(persistent=True)).couplings
    pairs = data.gather([sf.Request(e) for e in model.graph.edges])
    with pytest.raises(StatisticsError, match="the table of each node with its neighbours"):
        sf.fit(model, pairs, objective=sf.PseudoLikelihood())
    with pytest.raises(FitError, match=r"ContrastiveDivergence\(persistent=True\)"):
        sf.fit(model, all_of_them, objective=sf.ContrastiveDivergence())


def test_columns_and_states_may_come_in_any_order() -> None:
    table = rows(600)
    model = MODELS["Pairwise"]
    net = sf.fit(model, {n: table[n] for n in model.nodes}, objective=sf.PseudoLikelihood(), penalty=sf.L2(1.0))
    turned = {n: Finite(n, [f"{n}{i}" for i in reversed(range(STATES[n]))]) for n in model.nodes}
    data = sf.scan({n: table[n][::-1] for n in reversed(model.nodes)}, turned)
    other = sf.fit(model, data, objective=sf.PseudoLikelihood(), penalty=sf.L2(1.0))
    for scope, w in net.weights.items():
        assert other.weights[scope][tuple(slice(None, None, -1) for _ in scope)] == pytest.approx(w, abs=1e-6)


@pytest.mark.parametrize("steps", [1, 3])
def test_sweeps_have_the_probabilities_of_the_model(steps: int) -> None:
    """Chains that start with the right probabilities keep them, whatever the numbers of states."""
    sizes, scopes = [2, 3, 2, 2], [(0, 1), (1, 2), (0, 2, 3), (3,)]
    blankets = Blankets.of(sizes, scopes)
    logs = np.random.default_rng(0).normal(size=int(blankets.table_start[-1]))
    states = np.array(list(itertools.product(*map(range, sizes))))
    every = blankets.columns(states)
    log_p = np.array([sum(blankets.counts(np.ascontiguousarray(every[:, [k]])) * logs) for k in range(len(states))])
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    chosen = np.random.default_rng(1).choice(len(states), 60_000, p=p)
    columns = blankets.columns(states[chosen])
    for t in range(steps):
        blankets.sweep(columns, logs, 3, t)
    after = np.ravel_multi_index(tuple(columns.astype(int)), sizes)
    assert np.bincount(after, minlength=len(p)) / 60_000 == pytest.approx(p, abs=0.008)
    assert (after != chosen).mean() > 0.5
    own = np.full((4, 60_000), 0, np.uint16)
    for t in range(15):  # and those that do not come to have them
        blankets.sweep(own, logs, 4, t)
    assert np.bincount(np.ravel_multi_index(tuple(own.astype(int)), sizes), minlength=24) / 60_000 == pytest.approx(p, abs=0.01)


def test_tables_of_nodes_are_as_good_as_rows() -> None:
    blankets = Blankets.of([2, 3, 2], [(0, 1), (1, 2)])
    rng = np.random.default_rng(0)
    codes, logs = np.column_stack([rng.integers(0, k, 50) for k in (2, 3, 2)]), rng.normal(size=12)
    tables = []
    for i, around in enumerate(blankets.neighbours):
        own = np.zeros([[2, 3, 2][v] for v in (*around, i)])
        np.add.at(own, tuple(codes[:, (*around, i)].T), 1.0)
        tables.append(own)
    value, gradient = blankets.pseudo(blankets.columns(codes), np.ones(50), logs)
    other, by = blankets.pseudo_of_tables(LocalTables.of(blankets, tables), logs)
    assert other == pytest.approx(value)
    assert by == pytest.approx(gradient)


THREE = "a -- b -- c; a -- c"


@pytest.mark.parametrize(
    "objective", [sf.ContrastiveDivergence(20, chains=2000), sf.ContrastiveDivergence(persistent=True, chains=2000)]
)
@pytest.mark.parametrize("kind", [sf.Ising, sf.Pairwise])
def test_long_chains_come_to_the_likelihoods_optimum(objective: Any, kind: Any) -> None:
    table = rows(1000)
    data = sf.scan({n: table[n] for n in "abc"})
    exact = sf.fit(kind(THREE), data)
    net = sf.fit(kind(THREE), data, objective=objective, method=sf.RobbinsMonro(400, seed=2))
    for scope, w in exact.weights.items():
        assert net.weights[scope] == pytest.approx(w, abs=0.03)
    assert net.trace[-1].mismatch < 0.02
    assert net.log_likelihood() == pytest.approx(exact.log_likelihood(), abs=2.0)


def test_one_step_from_the_rows_comes_near() -> None:
    """CD-1 of an Ising model has a small bias."""
    table = rows(4000)
    data = sf.scan({n: table[n] for n in "abc"})
    exact, net = (sf.fit(sf.Ising(THREE), data, objective=o) for o in (None, sf.ContrastiveDivergence(chains=4000)))
    assert net.couplings == pytest.approx(exact.couplings, abs=0.05)


def test_penalties_hold_the_weights_of_contrastive_divergence() -> None:
    table = rows(500)
    data = sf.scan({n: table[n] for n in "abc"})
    goal = sf.ContrastiveDivergence(persistent=True, chains=2000)
    free, held, gone = (sf.fit(sf.Ising(THREE), data, objective=goal, penalty=p) for p in (None, sf.L2(200.0), sf.L1(500.0)))
    exact = sf.fit(sf.Ising(THREE), data, penalty=sf.L2(200.0))
    assert held.couplings == pytest.approx(exact.couplings, abs=0.03)
    assert sum(abs(j) for j in held.couplings.values()) < sum(abs(j) for j in free.couplings.values())
    assert set(gone.couplings.values()) == {0.0}


def test_the_seed_alone_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows(500)
    data = {n: table[n] for n in "abcd"}

    def fitted(seed: int, **goal: Any) -> dict[Any, float]:
        method = sf.RobbinsMonro(30, seed=seed)
        return sf.fit(MODELS["Ising"], data, objective=sf.ContrastiveDivergence(**goal), method=method).couplings

    first = [fitted(1), fitted(1, persistent=True)]
    monkeypatch.setattr("suffice.engines.steps.blocks.os.sched_getaffinity", lambda _: {0})
    assert first == [fitted(1), fitted(1, persistent=True)]
    assert first[0] != fitted(2)


def test_a_graph_too_large_for_a_tree() -> None:
    names, edges = grid(24, 24)
    rng = np.random.default_rng(0)
    blankets = Blankets.of([2] * 576, [(names.index(a), names.index(b)) for a, b in edges])
    spin = np.array([-1.0, 1.0])
    columns = rng.integers(0, 2, (576, 500)).astype(np.uint16)
    for t in range(40):
        blankets.sweep(columns, np.tile(0.3 * np.outer(spin, spin).ravel(), len(edges)), 0, t)
    data = sf.scan({n: columns[i].astype(bool) for i, n in enumerate(names)})
    model = sf.Ising(sf.Graph(edges))
    for objective in (sf.PseudoLikelihood(), sf.ContrastiveDivergence(persistent=True)):
        net = sf.fit(model, data, objective=objective, method=None)
        j = np.array(list(net.couplings.values()))
        assert j.mean() == pytest.approx(0.3, abs=0.02)
        assert np.sqrt(np.mean((j - 0.3) ** 2)) < 0.08
    with pytest.raises(TooLarge, match=r"PseudoLikelihood\(\) and ContrastiveDivergence\(\) learn without it"):
        net.query(names[0])
    with pytest.raises(TooLarge):
        sf.fit(model, data)
    _check_near(net, data, names)
    assert pickle.loads(pickle.dumps(net)) == net


def _check_near(net: Any, data: Data, names: list[str]) -> None:
    """A corner and its two neighbours, by hand."""
    corner, right, below = names[0], names[1], names[24]
    h, j = net.fields, net.couplings
    odds = 2 * (h[corner] + j[corner, right] - j[corner, below])
    p = 1 / (1 + np.exp(-odds))
    given = {right: "true", below: "false"}
    assert net.query(corner, given=given)["true"] == pytest.approx(p)
    assert net.query(corner, given=given).given == given
    others = {n: ["true"] for n in names[1:]} | {below: ["false"]}
    assert net.predict_proba(others, corner)["true"] == pytest.approx([p])
    assert list(net.predict(others, corner)) == ["true" if p > 0.5 else "false"]
    with pytest.raises(TooLarge):
        net.predict_proba({right: ["true"], below: [None]}, corner)
    with pytest.raises(TooLarge):
        net.query(corner, given={names[-1]: "true"})
    some = net.sample(20, seed=0)
    assert some.num_rows == 20


def test_what_is_given_cuts_a_net_into_parts() -> None:
    table = rows(2000)
    net = sf.fit(MODELS["LogLinear"], {n: table[n] for n in "abcef"}, penalty=sf.L2(0.1))
    for given in ({"b": "b0", "e": "e1"}, {"c": "c1", "e": "e1"}, {"b": "b0", "e": [0.2, 0.3, 0.5]}):
        near, rest = near_net(net, ["f", "a"], given)
        assert near.query(["f", "a"], rest).probs == pytest.approx(net.query(["f", "a"], given).probs)


BAD = {
    "prior": ({"prior": sf.BDeu(1)}, "a prior imagines rows"),
    "method": ({"method": sf.IPF()}, "method of .* is"),
}


@pytest.mark.parametrize("objective", [sf.PseudoLikelihood(), sf.ContrastiveDivergence()])
@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case: str, objective: Any) -> None:
    options, words = BAD[case]
    with pytest.raises(FitError, match=words):
        sf.fit("a -- b", {"a": list("xxyy"), "b": list("uvuv")}, objective=objective, **options)


def test_values_that_cannot_be() -> None:
    for wrong in ({"steps": 0}, {"chains": 0}, {"persistent": 1}):
        with pytest.raises(FitError):
            sf.ContrastiveDivergence(**wrong)
    for wrong in ({"rounds": 1}, {"rate": 0.0}, {"rate": True}, {"seed": -1}):
        with pytest.raises(FitError):
            sf.RobbinsMonro(**wrong)
    with pytest.raises(FitError, match=r"'a', 'b'.*run off to infinity.*L2"):
        sf.fit(sf.Ising("a -- b"), {"a": list("xxyy") * 9, "b": list("uuvv") * 9}, objective=sf.PseudoLikelihood())
    with pytest.raises(TooLarge, match="chains"):
        Blankets.of([2] * 3, [(0, 1)]).checked_chains(2**31)


def test_steps_pickle() -> None:
    data = sf.scan(rows(50))
    terms = terms_of(MODELS["LogLinear"], data)
    step = PseudoStep(blankets_of(terms), terms.names, np.zeros(terms.n_cells))
    own = data.take(terms.names)
    assert own.fold(pickle.loads(pickle.dumps(step)))[0] == own.fold(step)[0]
