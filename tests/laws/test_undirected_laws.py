"""Laws of undirected models of finite variables: everything is what enumeration says it is."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.models.undirected.factor import Terms
from suffice.numerics.inference.finite.junction_tree import FactorTree

Array = npt.NDArray[np.float64]
few = settings(max_examples=12)


@st.composite
def graphs(draw: st.DrawFn, most: int) -> sf.Graph:
    names = [f"v{i}" for i in range(draw(st.integers(2, most)))]
    pairs = draw(st.lists(st.sampled_from(list(combinations(names, 2))), unique=True, max_size=12))
    return sf.Graph(pairs, nodes=names)


@st.composite
def nets(draw: st.DrawFn, most: int = 6, zeros: bool = False) -> sf.MarkovNet:
    graph = draw(graphs(most))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    variables = {n: sf.Finite(n, [f"s{k}" for k in range(rng.integers(1, 4))]) for n in graph.nodes}
    factors = []
    for clique in graph.cliques():
        log = 2.0 * rng.normal(size=[variables[n].n_states for n in clique])
        log[(rng.random(log.shape) < 0.15) & zeros] = -np.inf
        log.reshape(-1)[0] = 0.0  # one joint state stays possible
        factors.append((clique, log))
    return sf.MarkovNet(factors, variables)


def joint(net: sf.MarkovNet) -> tuple[Array, float]:
    """p of all joint states, an axis per variable, and ln Z."""
    shape, names = [v.n_states for v in net.variables.values()], list(net.variables)
    logs = np.zeros(shape)
    for f in net.factors:
        order = np.argsort([names.index(n) for n in f.names])
        own = np.transpose(f.log, order)
        logs = logs + own.reshape([shape[i] if n in f.names else 1 for i, n in enumerate(names)])
    log_z = float(np.logaddexp.reduce(logs.reshape(-1)))
    return np.exp(logs - log_z), log_z


def summed(p: Array, kept: list[int]) -> Array:
    return np.asarray(p.sum(axis=tuple(i for i in range(p.ndim) if i not in kept)))


@few
@given(nets(zeros=True))
def test_answers_are_those_of_enumeration(net: sf.MarkovNet) -> None:
    p, log_z = joint(net)
    names = list(net.variables)
    assert net.log_normaliser == pytest.approx(log_z, abs=1e-10)
    marginals = net.marginals()
    for i, name in enumerate(names):
        assert marginals[name].probs == pytest.approx(summed(p, [i]), abs=1e-10)
    assert net.query(names[:2]).probs == pytest.approx(summed(p, [0, 1]), abs=1e-10)
    best = net.most_probable()
    at = tuple(net.variables[n].code(best[n]) for n in names)
    assert p[at] == pytest.approx(p.max(), rel=1e-9)
    cells = list(product(*(range(k) for k in p.shape)))
    rows = {n: [net.variables[n].states[c[i]] for c in cells] for i, n in enumerate(names)}
    with np.errstate(divide="ignore"):
        assert net.log_prob(rows) == pytest.approx(np.log([p[c] for c in cells]), abs=1e-9)
    assert net.entropy() == pytest.approx(-float((p[p > 0] * np.log(p[p > 0])).sum()), abs=1e-9)


@few
@given(nets())
def test_marginals_of_factors_are_those_of_enumeration_also_by_logs(net: sf.MarkovNet) -> None:
    p, log_z = joint(net)
    names = list(net.variables)
    terms = Terms(net.variables, [], [f.names for f in net.factors])
    tree, flat = FactorTree(terms.network(), "a test"), np.concatenate([f.log.reshape(-1) for f in net.factors])
    for ask in (tree, tree._in_logs):
        found = ask(flat)
        assert found.log_z == pytest.approx(log_z, abs=1e-10)
        for f, own in zip(net.factors, terms.tables(found.probs), strict=True):
            assert own == pytest.approx(summed(p, [names.index(n) for n in f.names]), abs=1e-10)


@few
@given(graphs(5), st.integers(0, 10_000), st.sampled_from(["graph", "pairs", "spins"]))
def test_the_gradient_is_that_of_finite_differences_and_vanishes_at_the_estimate(graph: sf.Graph, seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    sizes = {n: 2 if kind == "spins" else int(rng.integers(2, 4)) for n in graph.nodes}
    model = {"graph": sf.LogLinear(graph.cliques()), "pairs": sf.Pairwise(graph), "spins": sf.Ising(graph)}[kind]
    variables = tuple(sf.Finite(n, [f"s{k}" for k in range(sizes[n])]) for n in graph.nodes)
    counts = rng.integers(1, 9, [v.n_states for v in variables]).astype(float)
    seen = sf.Statistics([sf.statistics.Counts(variables, counts)], counts.sum())
    terms = Terms.of(model, {v.name: v for v in variables})
    tree, cells = FactorTree(terms.network(), "a test"), terms.count_cells(seen)

    def log_likelihood(w: Array) -> float:
        logs = terms.log_tables(w)
        return float(cells @ logs) - seen.weight * tree(logs).log_z

    w, at = 0.5 * rng.normal(size=terms.n_weights), int(rng.integers(0, terms.n_weights))
    slope = terms.by_weight(cells - seen.weight * tree(terms.log_tables(w)).probs)[at]
    step = np.zeros(terms.n_weights)
    step[at] = 1e-5
    assert slope == pytest.approx((log_likelihood(w + step) - log_likelihood(w - step)) / 2e-5, abs=1e-4)
    fits = [sf.fit(model, seen, method=method) for method in (None, sf.methods.IPF(), sf.methods.LBFGS())]
    for net in fits:
        assert net.log_likelihood() == pytest.approx(fits[0].log_likelihood(), abs=1e-6)
        p, _ = joint(net)
        for scope in model.scopes:
            places = [graph.nodes.index(n) for n in scope]
            assert summed(p, places) == pytest.approx(summed(counts / counts.sum(), places), abs=1e-7)


@few
@given(graphs(4), st.integers(0, 10_000), st.sampled_from([None, sf.L1(2.0), sf.L2(1.5), sf.L1(0.5) + sf.L2(0.5)]))
def test_the_order_of_columns_and_states_changes_nothing(graph: sf.Graph, seed: int, penalty: object) -> None:
    rng = np.random.default_rng(seed)
    rows = {n: rng.integers(0, 3, 60).astype(str) for n in graph.nodes}
    model = sf.Pairwise(graph)
    plain = {n: sf.Finite(n, ["0", "1", "2"]) for n in graph.nodes}
    turned = {n: sf.Finite(n, list(rng.permutation(["0", "1", "2"]))) for n in reversed(graph.nodes)}
    try:
        one = sf.fit(model, sf.scan(rows, variables=plain), penalty=penalty)
    except sf.SufficeError:
        return  # no estimate: the same is said of the other
    other = sf.fit(model, sf.scan({n: rows[n] for n in turned}, variables=turned), penalty=penalty)
    assert other.log_likelihood() == pytest.approx(one.log_likelihood(), abs=1e-5)
    a, b = graph.nodes[0], graph.nodes[-1]
    for x, y in product("012", repeat=2):
        found = other.log_prob_of({a: x, b: y})
        assert np.exp(found) == pytest.approx(np.exp(one.log_prob_of({a: x, b: y})), abs=1e-5)


@few
@given(nets(5))
def test_a_decomposable_network_is_a_bayes_net_and_back(net: sf.MarkovNet) -> None:
    p, _ = joint(net)
    twin = net.directed
    again = twin.moral()
    assert again.log_normaliser == pytest.approx(0.0, abs=1e-9)
    assert joint(again)[0] == pytest.approx(p, abs=1e-10)
    if net.graph.is_decomposable:
        assert net.to_bayes_net().dag.skeleton() == net.graph
    else:
        with pytest.raises(sf.SufficeError, match="not decomposable"):
            net.to_bayes_net()
