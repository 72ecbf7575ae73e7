"""Laws of inference: every answer is what enumeration of all configurations gives, on random networks with variables of one
to three states and zeros in their tables; and asking in another way, or naming things in another order, changes no answer."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import ModelError
from suffice.incomplete.rows import posterior_in_rows
from suffice.numerics.inference.finite import junction_tree, questions
from suffice.numerics.inference.finite.junction_tree import JunctionTree
from suffice.numerics.inference.finite.logs import likelihood_factors
from suffice.numerics.inference.finite.network import NONE, Network
from suffice.numerics.inference.finite.questions import most_probable, posterior
from tests.oracles import joint, random_net

seeds = st.integers(0, 2**32 - 1)
CLOSE = 1e-12


def case(seed: int, soft: bool = False) -> tuple[sf.BayesNet, dict[str, Any], np.random.Generator]:
    """A network of one to six nodes, and evidence on some of them that may be impossible; with `soft`, some are likelihoods."""
    rng = np.random.default_rng(seed)
    bn = random_net(seed, int(rng.integers(1, 7)), zeros=bool(rng.integers(2)))
    given: dict[str, Any] = {}
    for name in rng.permutation(list(bn))[: rng.integers(0, len(bn))].tolist():
        states = bn.variables[name].states
        given[name] = str(rng.choice(states))
        if soft and rng.random() < 0.7:
            likelihood = rng.random(len(states)) * (rng.random(len(states)) < 0.8)
            likelihood[rng.integers(len(states))] += 0.1
            given[name] = likelihood.tolist() if rng.integers(2) else dict(zip(states, likelihood.tolist(), strict=True))
    return bn, given, rng


def weighed(bn: sf.BayesNet, given: dict[str, Any]) -> np.ndarray:
    """p(configuration, evidence) of all configurations, one axis per node."""
    sizes = [bn.variables[n].n_states for n in bn.dag.nodes]
    table = np.array(list(joint(bn).values())).reshape(sizes)
    for name, value in given.items():
        states = bn.variables[name].states
        if isinstance(value, str):
            likelihood = [float(s == value) for s in states]
        else:
            likelihood = [value[s] for s in states] if isinstance(value, dict) else value
        axis = bn.dag.nodes.index(name)
        table = table * np.reshape(likelihood, [-1 if i == axis else 1 for i in range(table.ndim)])
    return table


def enumerated(bn: sf.BayesNet, targets: list[str], given: dict[str, Any]) -> np.ndarray:
    """p(targets, evidence), one axis per target in their order."""
    table = weighed(bn, given)
    return np.einsum(table, list(range(table.ndim)), [bn.dag.nodes.index(t) for t in targets])


def some(rng: np.random.Generator, names: list[str], most: int = 3) -> list[str]:
    """One to `most` of the names, in any order."""
    picked: list[str] = rng.permutation(names)[: rng.integers(1, most + 1)].tolist()
    return picked


def unobserved(bn: sf.BayesNet, given: dict[str, Any]) -> list[str]:
    return [n for n in bn if n not in given]


@settings(max_examples=60, deadline=None)
@drawn(seed=seeds, soft=st.booleans())
def test_query_is_enumeration(seed: int, soft: bool) -> None:
    """Of one target and of several, in every order; refused exactly where the evidence has probability zero."""
    bn, given, rng = case(seed, soft)
    for targets in permutations(some(rng, unobserved(bn, given))):
        expected = enumerated(bn, list(targets), given)
        if expected.sum() == 0.0:
            with pytest.raises(ModelError, match="probability zero"):
                bn.query(list(targets), given)
        else:
            answer = bn.query(list(targets), given)
            np.testing.assert_allclose(answer.probs, expected / expected.sum(), rtol=0, atol=CLOSE)


@settings(max_examples=60, deadline=None)
@drawn(seed=seeds, soft=st.booleans())
@example(seed=10432, soft=False)  # impossible in one of several parts
@example(seed=11671, soft=True)
def test_marginals_are_queries(seed: int, soft: bool) -> None:
    """Of every node at once, observed ones too: refused exactly where the evidence has probability zero."""
    bn, given, _ = case(seed, soft)
    if weighed(bn, given).sum() == 0.0:
        with pytest.raises(ModelError, match="probability zero"):
            bn.marginals(given)
        return
    answers = bn.marginals(given)
    assert list(answers) == list(bn)
    for name in bn:
        expected = enumerated(bn, [name], given)
        np.testing.assert_allclose(answers[name].probs, expected / expected.sum(), rtol=0, atol=CLOSE)
        if name not in given:
            np.testing.assert_allclose(answers[name].probs, bn.query(name, given).probs, rtol=0, atol=CLOSE)


@settings(max_examples=60, deadline=None)
@drawn(seed=seeds, soft=st.booleans())
def test_log_prob_of_is_the_sum(seed: int, soft: bool) -> None:
    bn, given, _ = case(seed, soft)
    with np.errstate(divide="ignore"):
        expected = float(np.log(weighed(bn, given).sum()))
    assert bn.log_prob_of(given) == pytest.approx(expected, rel=1e-12, abs=CLOSE)


@settings(max_examples=60, deadline=None)
@drawn(seed=seeds, soft=st.booleans())
def test_most_probable_attains_the_maximum(seed: int, soft: bool) -> None:
    """Of all that is not observed, and of some of it with the rest summed out."""
    bn, given, rng = case(seed, soft)
    hard = {n for n, value in given.items() if isinstance(value, str)}
    everything = [n for n in bn if n not in hard]
    for targets in (None, some(rng, unobserved(bn, given), most=len(bn))):
        expected = enumerated(bn, targets or everything, given)
        if expected.sum() == 0.0:
            with pytest.raises(ModelError, match="probability zero"):
                bn.most_probable(given, targets)
            continue
        best = bn.most_probable(given, targets)
        assert sorted(best) == sorted(targets or everything)
        codes = tuple(bn.variables[n].code(best[n]) for n in targets or everything)
        assert expected[codes] == pytest.approx(expected.max(), rel=1e-12)
        assert best.log_prob == pytest.approx(np.log(expected.max()), abs=CLOSE)
        assert best.probability == pytest.approx(expected.max() / expected.sum(), rel=1e-11)


@settings(max_examples=60, deadline=None)
@drawn(seed=seeds)
def test_the_chain_rule(seed: int) -> None:
    """p(a, b | e) = p(a | b, e) p(b | e)."""
    bn, given, rng = case(seed)
    names = rng.permutation(unobserved(bn, given)).tolist()
    if len(names) < 2 or weighed(bn, given).sum() == 0.0:
        return
    a, b = names[:2]
    together, second = bn.query([a, b], given), bn.query(b, given)
    for state, p in second.items():
        if p > 0.0:
            first = bn.query(a, {**given, b: state})
            for other in first:
                assert together[other, state] == pytest.approx(first[other] * p, rel=0, abs=CLOSE)
        else:
            assert bn.log_prob_of({**given, b: state}) == -np.inf


def renamed_order(bn: sf.BayesNet, rng: np.random.Generator) -> sf.BayesNet:
    """The same network with its nodes, its edges and the states of each variable declared in another order."""
    nodes, edges = rng.permutation(list(bn)).tolist(), [bn.dag.edges[i] for i in rng.permutation(len(bn.dag.edges))]
    dag = sf.Dag(edges, nodes=nodes)
    order = {n: rng.permutation(bn.variables[n].n_states) for n in nodes}
    variables = {n: sf.Finite(n, [bn.variables[n].states[i] for i in order[n]]) for n in nodes}
    tables = {}
    for n in nodes:
        scope = [*dag.parents(n), n]
        axes = [[*bn[n].parents, n].index(v) for v in scope]
        tables[n] = bn[n].probs.transpose(axes)[np.ix_(*(order[v] for v in scope))]
    return sf.BayesNet(dag, tables, variables)


@settings(max_examples=60, deadline=None)
@drawn(seed=seeds)
def test_order_of_nodes_and_states_changes_nothing(seed: int) -> None:
    bn, given, rng = case(seed)
    if weighed(bn, given).sum() == 0.0:
        return
    other = renamed_order(bn, rng)
    one, two = bn.marginals(given), other.marginals(given)
    for name in bn:
        assert dict(two[name]) == pytest.approx(dict(one[name]), rel=0, abs=CLOSE)
    targets = some(rng, unobserved(bn, given))
    assert dict(other.query(targets, given)) == pytest.approx(dict(bn.query(targets, given)), rel=0, abs=CLOSE)
    assert other.log_prob_of(given) == pytest.approx(bn.log_prob_of(given), abs=CLOSE)
    assert other.most_probable(given).log_prob == pytest.approx(bn.most_probable(given).log_prob, abs=CLOSE)


@settings(max_examples=60, deadline=None)
@drawn(seed=seeds)
def test_rows_are_queries(seed: int) -> None:
    """Each row with other cells missing, the target's own cell ignored, rows with nothing observed among them."""
    bn, _, rng = case(seed)
    rows = bn.sample(30, seed=seed % 1000).to_pandas().astype(object)
    gaps = rng.random(rows.shape) < rng.random((30, 1))
    frame = rows.mask(gaps, None)
    target = str(rng.choice(list(bn)))
    answer = bn.predict_proba(frame, target)
    assert isinstance(answer, pd.DataFrame)
    assert len(answer) == 30
    for i, line in enumerate(answer.to_numpy(dtype=float)):
        given = {n: rows[n].iloc[i] for j, n in enumerate(rows) if not gaps[i, j] and n != target}
        np.testing.assert_allclose(line, bn.query(target, given).probs, rtol=0, atol=CLOSE)


@settings(max_examples=60, deadline=None)
@drawn(seed=seeds)
def test_do_is_the_mutilated_product(seed: int) -> None:
    """p(x | do(a)) = Π over the nodes that are not set of p(node | parents), where a is what was set."""
    bn, _, rng = case(seed)
    done = {n: str(rng.choice(bn.variables[n].states)) for n in some(rng, list(bn), most=2)}
    nodes = bn.dag.nodes
    expected = np.zeros([bn.variables[n].n_states for n in nodes])
    for states in joint(bn):
        row = dict(zip(nodes, states, strict=True))
        if all(row[n] == s for n, s in done.items()):
            factors = [bn[n].predictive({p: row[p] for p in bn[n].parents}) for n in nodes if n not in done]
            own = [bn.variables[n].code(row[n]) for n in nodes if n not in done]
            at = tuple(bn.variables[n].code(row[n]) for n in nodes)
            expected[at] = np.prod([f[code] for f, code in zip(factors, own, strict=True)])
    mutilated = bn.do(done)
    axes = [nodes.index(n) for n in mutilated.dag.nodes]
    np.testing.assert_allclose(weighed(mutilated, {}), expected.transpose(axes), atol=1e-15)
    others = [n for n in nodes if n not in done]
    for name in others:
        summed = expected.sum(tuple(i for i, n in enumerate(nodes) if n != name))
        np.testing.assert_allclose(mutilated.query(name).probs, summed, rtol=0, atol=CLOSE)


def random_factors(seed: int) -> tuple[Network, np.ndarray, np.ndarray, dict[int, np.ndarray], np.random.Generator]:
    """A network and further factors, no distributions; the product of all with codes and likelihoods, on observed ones too."""
    rng = np.random.default_rng(seed)
    network = random_net(seed, int(rng.integers(1, 10)), zeros=True).compiled.network
    n = network.n_variables
    scopes = [rng.permutation(n)[: rng.integers(0, 4)] for _ in range(rng.integers(0, 4))]
    more = [(s, NONE, rng.random(network.sizes[s]) * (rng.random(network.sizes[s]) < 0.9)) for s in scopes]
    network = network.with_factors([(s.tolist(), child, table) for s, child, table in more])
    codes = np.where(rng.random(n) < 0.3, rng.integers(0, network.sizes), NONE)
    soft = {v: rng.random(network.sizes[v]) for v in range(n) if rng.random() < 0.3}
    factors = [(scope.tolist(), table) for scope, _, table in network.factors()]
    factors += [([v], table) for v, table in soft.items()]
    factors += [([v], np.eye(network.sizes[v])[codes[v]]) for v in range(n) if codes[v] >= 0]
    operands = [x for scope, table in factors for x in (table, scope)]
    return network, np.einsum(*operands, list(range(n))), codes, soft, rng


@pytest.fixture(params=["by the kernel of rows", "one by one"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How a question is answered: many at a time, or as in large networks, where trees are made for the evidence, too."""
    if request.param == "one by one":
        monkeypatch.setattr(questions, "MOST_VARIABLES", 0)
        monkeypatch.setattr(junction_tree, "RETRY_CELLS", 0)


@pytest.mark.usefixtures("way")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@drawn(seed=seeds)
@example(seed=372)  # impossible as it stands, before anything is multiplied
@example(seed=10002)
@example(seed=10938)
def test_factors_that_are_no_distributions(seed: int) -> None:
    """The same below the models: `posterior`, `JunctionTree.marginals` and `most_probable` on any product of factors."""
    network, table, codes, soft, rng = random_factors(seed)
    n, total = network.n_variables, table.sum()
    free = [v for v in range(n) if codes[v] < 0]
    targets = rng.permutation(free)[: rng.integers(0, 4)].tolist()
    factors = likelihood_factors(soft)
    answer, tree = posterior(network, targets, codes, factors), JunctionTree.of(network).marginals(codes, factors)
    if total == 0.0:
        assert answer.log_prob == tree.log_prob == -np.inf
        assert np.isnan(answer.probs).all()
        return
    assert answer.log_prob == pytest.approx(np.log(total), abs=CLOSE)
    assert tree.log_prob == pytest.approx(np.log(total), abs=CLOSE)
    np.testing.assert_allclose(answer.probs, np.einsum(table, list(range(n)), targets) / total, rtol=0, atol=CLOSE)
    for v in range(n):
        own = tree.probs[tree.start[v] : tree.start[v + 1]]
        np.testing.assert_allclose(own, np.einsum(table, list(range(n)), [v]) / total, rtol=0, atol=CLOSE)
    best = most_probable(network, targets, codes, factors)
    expected = np.einsum(table, list(range(n)), targets)
    assert best.log_joint == pytest.approx(np.log(expected.max()), abs=CLOSE)
    assert expected[tuple(best.codes)] == pytest.approx(expected.max(), rel=1e-12)


@pytest.mark.usefixtures("way")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@drawn(seed=seeds)
def test_many_rows_below_the_models(seed: int) -> None:
    """Rows that are impossible, and only those, are NaN, even where the target does not depend on it. The row's own cell of a
    target is not evidence."""
    rng = np.random.default_rng(seed)
    network = random_net(seed, int(rng.integers(1, 7)), zeros=True).compiled.network
    shape = (25, network.n_variables)
    codes = np.where(rng.random(shape) < rng.random((25, 1)), rng.integers(0, network.sizes, shape), NONE)
    targets = rng.permutation(network.n_variables)[:2]
    for target, lines in ((t, posterior_in_rows(network, int(t), codes)) for t in targets):
        assert lines.shape == (25, network.sizes[target])
        for row, line in zip(codes, lines, strict=True):
            others = row.copy()
            others[target] = NONE
            np.testing.assert_allclose(line, posterior(network, [int(target)], others).probs, rtol=0, atol=CLOSE)
