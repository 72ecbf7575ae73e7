"""Inference where floating point or size could break it: probabilities down to 1e-300 and products far below the smallest
double, long chains, deterministic tables, and networks that are very wide, very loose or too dense.

Small networks are checked against exact rational arithmetic (a double is a rational number), large ones against closed forms.
"""

from __future__ import annotations

import math
import subprocess
import sys
import weakref
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import ModelError, TooLarge
from suffice.numerics.inference.finite import questions
from suffice.numerics.inference.finite.network import Network
from suffice.numerics.inference.finite.questions import interruptible
from tests.oracles import random_net

TINY = 1e-300
LOG_TINY = math.log(TINY)
VANISHES = 1e-200
COIN = [0.5, 0.5]
COPY = [[1.0, 0.0], [0.0, 1.0]]
XOR = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]


def binary(dag: Any, tables: dict[str, Any], n_states: int = 2) -> sf.BayesNet:
    """A network whose variables all have the states 0, 1, …"""
    return sf.BayesNet(dag, tables, {n: sf.Finite(n, list(map(str, range(n_states)))) for n in tables})


def rational(bn: sf.BayesNet, given: dict[str, str]) -> tuple[dict[str, list[float]], float]:
    """p(node | given) of every node and ln p(given) by enumeration in exact arithmetic."""
    nodes = list(bn)
    choices = [[bn.variables[n].code(given[n])] if n in given else range(bn.variables[n].n_states) for n in nodes]
    sums = {n: [Fraction(0)] * bn.variables[n].n_states for n in nodes}
    total = Fraction(0)
    for codes in product(*choices):
        at = dict(zip(nodes, codes, strict=True))
        factors = [float(bn[n].probs[tuple(at[p] for p in (*bn[n].parents, n))]) for n in nodes]
        p = math.prod(map(Fraction, factors))
        total += p
        for n in nodes:
            sums[n][at[n]] += p
    if not total:
        return {}, -math.inf
    return {n: [float(s / total) for s in sums[n]] for n in nodes}, math.log(total.numerator) - math.log(total.denominator)


def assert_rational(bn: sf.BayesNet, given: dict[str, str]) -> None:
    """Every unobserved node by query, marginals and a row, and the probability of the evidence."""
    expected, log_prob = rational(bn, given)
    assert bn.log_prob_of(given) == pytest.approx(log_prob, rel=1e-12, abs=1e-12)
    if log_prob == -math.inf:
        with pytest.raises(ModelError, match="probability zero"):
            bn.marginals(given)
        return
    marginals, frame = bn.marginals(given), {n: [s] for n, s in given.items()} or {next(iter(bn)): [None]}
    assert marginals.log_prob_of_evidence == pytest.approx(log_prob, rel=1e-12, abs=1e-12)
    for name in bn:
        close = pytest.approx(expected[name], rel=1e-9, abs=VANISHES)
        assert marginals[name].probs == close
        if name not in given:
            assert bn.query(name, given).probs == close
            row = bn.predict_proba(frame, name)
            assert [row[s][0] for s in bn.variables[name].states] == close


@settings(max_examples=100, deadline=None)
@drawn(seed=st.integers(0, 2**32 - 1))
def test_any_sizes_of_probabilities(seed: int) -> None:
    """Random networks whose tables range from 1e-300 to 1, with zeros."""
    rng = np.random.default_rng(seed)
    plain = random_net(seed, int(rng.integers(1, 6)))
    tables = {}
    for n in plain:
        table = plain[n].probs * 10.0 ** -rng.uniform(0, 300, plain[n].probs.shape) * (rng.random(plain[n].probs.shape) < 0.9)
        table[..., 0] += 1e-300
        tables[n] = table / table.sum(-1, keepdims=True)
    bn = sf.BayesNet(plain.dag, tables, plain.variables)
    observed = rng.permutation(list(bn))[: rng.integers(0, len(bn))].tolist()
    assert_rational(bn, {n: str(rng.choice(bn.variables[n].states)) for n in observed})


def hidden_chain(length: int, scale: float) -> tuple[sf.BayesNet, dict[str, str]]:
    """Hidden states h, each seen as s with a probability near `scale`; all are seen in the improbable state."""
    rng = np.random.default_rng(length)
    edges, tables = [], {}
    for i in range(length):
        p = rng.uniform(0.2, 0.8, 2)
        seen = scale * rng.uniform(1, 9, 2)
        edges += [(f"h{i}", f"s{i}")] + ([(f"h{i - 1}", f"h{i}")] if i else [])
        tables[f"h{i}"] = np.array([p[0], 1 - p[0]]) if i == 0 else np.column_stack([p, 1 - p])
        tables[f"s{i}"] = np.column_stack([1 - seen, seen])
    return binary(edges, tables), {f"s{i}": "1" for i in range(length)}


@pytest.mark.parametrize("scale", [1e-3, 1e-100, TINY])
def test_evidence_far_below_the_smallest_double(scale: float) -> None:
    """Seven observations of 1e-300 make 1e-2100."""
    bn, given = hidden_chain(7, scale)
    assert_rational(bn, given)


def test_improbable_parents_and_children() -> None:
    """Tiny numbers within one table and along a diamond, observed at one end, at both, in the middle."""
    table = [[[1.0, TINY], [TINY, 1.0]], [[1.0, 3 * TINY], [0.5, 0.5]]]
    tables = {"a": [1.0, TINY], "b": [[1.0, TINY], [1.0, 2 * TINY]], "c": [[1.0, 5 * TINY], [TINY, 1.0]], "d": table}
    bn = binary("a -> b -> d; a -> c -> d", tables)
    for given in [{"d": "1"}, {"b": "1", "c": "1"}, {"a": "1", "d": "1"}, {"b": "1", "d": "1"}, {"a": "1", "b": "1", "c": "1"}]:
        assert_rational(bn, given)


def test_most_probable_of_improbable_things() -> None:
    """Viterbi's path in logs; the products themselves are below the smallest double."""
    bn, given = hidden_chain(40, TINY)
    score = np.log(bn["h0"].probs) + np.log(bn["s0"].probs[:, 1])
    for i in range(1, 40):
        score = (score[:, None] + np.log(bn[f"h{i}"].probs)).max(0) + np.log(bn[f"s{i}"].probs[:, 1])
    best = bn.most_probable(given)
    assert best.log_prob == pytest.approx(score.max(), rel=1e-12)
    rows = {**{n: [s] for n, s in given.items()}, **{n: [s] for n, s in best.items()}}
    assert bn.log_prob(rows)[0] == pytest.approx(score.max(), rel=1e-12)
    assert best.log_prob_of_evidence == pytest.approx(bn.log_prob_of(given), rel=1e-12)


def chain(length: int) -> tuple[sf.BayesNet, list[np.ndarray]]:
    rng = np.random.default_rng(0)
    steps = [rng.dirichlet(np.full(3, 0.5), size=3) for _ in range(length)]
    steps[0] = steps[0][:1]
    tables = {f"x{i}": t if i else t[0] for i, t in enumerate(steps)}
    return binary([(f"x{i}", f"x{i + 1}") for i in range(length - 1)], tables, 3), steps


def test_a_chain_of_a_thousand_nodes() -> None:
    """Against products of its matrices: all marginals, both ends and the middle observed."""
    bn, steps = chain(1000)
    given = {"x0": "1", "x500": "2", "x999": "0"}
    code = {0: 1, 500: 2, 999: 0}
    forward, log_prob = [np.ones(1)], 0.0
    for i, step in enumerate(steps):
        now = forward[-1] @ step
        now = now * (np.arange(3) == code[i]) if i in code else now
        log_prob += math.log(now.sum())
        forward.append(now / now.sum())
    backward, after = [np.ones(3)], np.ones(3)
    for i in range(999, 0, -1):
        after = steps[i] @ (after * (np.arange(3) == code[i]) if i in code else after)
        after = after / after.sum()
        backward.append(after)
    answers = bn.marginals(given)
    assert bn.log_prob_of(given) == pytest.approx(log_prob, rel=1e-12)
    for i in range(1000):
        expected = forward[i + 1] * backward[999 - i]
        np.testing.assert_allclose(answers[f"x{i}"].probs, expected / expected.sum(), rtol=1e-9, atol=1e-14)
    assert bn.treewidth == 1


def test_a_chain_of_a_thousand_nodes_without_evidence() -> None:
    bn, steps = chain(1000)
    expected = np.ones(1)
    for step in steps:
        expected = expected @ step
    np.testing.assert_allclose(bn.query("x999").probs, expected, rtol=1e-10)
    np.testing.assert_allclose(bn.marginals()["x999"].probs, expected, rtol=1e-10)


def test_a_chain_of_a_thousand_nodes_all_observed() -> None:
    """ln p is a sum of a thousand logs; p itself is no double."""
    bn, _ = chain(1000)
    row = bn.sample(1, seed=0).to_pydict()
    given = {n: values[0] for n, values in row.items()}
    assert bn.log_prob_of(given) == pytest.approx(float(bn.log_prob(row)[0]), rel=1e-12)
    last = given.pop("x999")
    assert bn.query("x999", given)[last] == pytest.approx(bn["x999"].probs[int(given["x998"]), int(last)], rel=1e-12)


def parity(length: int) -> sf.BayesNet:
    """y_i = y_{i−1} xor x_i of coins x."""
    edges = [("x0", "y0")]
    tables: dict[str, Any] = {"x0": COIN, "y0": COPY}
    for i in range(1, length):
        edges += [(f"y{i - 1}", f"y{i}"), (f"x{i}", f"y{i}")]
        tables |= {f"x{i}": COIN, f"y{i}": XOR}
    return binary(edges, tables)


def test_parity() -> None:
    """All coins but one and their parity leave no choice for that one; all coins and the wrong parity cannot be."""
    bn = parity(200)
    coins = {f"x{i}": str(i * i % 7 % 2) for i in range(200)}
    odd = sum(map(int, coins.values())) % 2
    assert bn.query("y199").probs.tolist() == pytest.approx(COIN, abs=1e-15)
    assert bn.log_prob_of(coins) == pytest.approx(200 * math.log(0.5), rel=1e-12)
    assert bn.log_prob_of({**coins, "y199": str(odd)}) == pytest.approx(200 * math.log(0.5), rel=1e-12)
    own = coins.pop("x77")
    assert bn.query("x77", {**coins, "y199": str(odd)})[own] == 1.0
    assert bn.marginals({**coins, "y199": str(odd)})["x77"][own] == 1.0
    assert bn.most_probable({**coins, "y199": str(odd)})["x77"] == own
    wrong = {**coins, "x77": own, "y199": str(1 - odd)}
    assert bn.log_prob_of(wrong) == -math.inf
    for ask in (lambda: bn.query("y50", wrong), lambda: bn.marginals(wrong), lambda: bn.most_probable(wrong)):
        with pytest.raises(ModelError, match="probability zero"):
            ask()


def test_parity_seen_at_its_end_says_nothing_of_a_coin() -> None:
    bn = parity(100)
    answers = bn.marginals({"y99": "1", "x3": "0"})
    assert answers["x50"].probs.tolist() == pytest.approx(COIN, abs=1e-14)
    assert bn.query(["x1", "x50"], {"y99": "1"}).probs == pytest.approx(np.full((2, 2), 0.25), abs=1e-14)


def test_copies_of_copies() -> None:
    """What was copied a thousand times must agree with itself."""
    bn = binary([(f"x{i}", f"x{i + 1}") for i in range(999)], {"x0": COIN} | {f"x{i}": COPY for i in range(1, 1000)})
    assert bn.log_prob_of({"x0": "1", "x999": "1"}) == pytest.approx(math.log(0.5), rel=1e-14)
    assert bn.marginals({"x999": "1"})["x0"].probs.tolist() == [0.0, 1.0]
    assert bn.log_prob_of({"x0": "0", "x999": "1"}) == -math.inf
    with pytest.raises(ModelError, match="probability zero"):
        bn.marginals({"x0": "0", "x999": "1"})
    frame = pd.DataFrame({"x0": ["0", None, "1"], "x999": ["0", "1", None]})
    assert bn.predict_proba(frame, "x500")["1"].tolist() == [0.0, 1.0, 1.0]


def favours(n_children: int, ratio: float) -> dict[str, Any]:
    """Children that, seen in state 1, speak for state 0 of their parent by 1/ratio each."""
    return {f"c{i}": [[0.5, 0.5], [1 - 0.5 * ratio, 0.5 * ratio]] for i in range(n_children)}


@pytest.mark.parametrize(("n_children", "ratio"), [(1, TINY), (2, TINY), (3, 1e-200), (300, 1e-3)])
def test_strong_hints_lose_against_an_exclusion(n_children: int, ratio: float) -> None:
    """However strongly the others favour it, a state that one branch excludes is excluded, and the evidence is possible."""
    children = favours(n_children, ratio)
    tables = {"x": COIN, "never": [[1.0, 0.0], [0.5, 0.5]], **children}
    bn = binary([("x", "never"), *(("x", c) for c in children)], tables)
    given = {"never": "1", **dict.fromkeys(children, "1")}
    assert bn.query("x", given).probs.tolist() == [0.0, 1.0]
    assert bn.marginals(given)["x"].probs.tolist() == [0.0, 1.0]
    assert bn.log_prob_of(given) == pytest.approx(2 * math.log(0.5) + n_children * math.log(0.5 * ratio), rel=1e-12)
    assert bn.most_probable(given)["x"] == "1"
    frame = pd.DataFrame({n: [s] for n, s in given.items()})
    assert bn.predict_proba(frame, "x").to_numpy(dtype=float).tolist() == [[0.0, 1.0]]


def test_strong_hints_against_an_exclusion_at_a_distance() -> None:
    """The same with branches that hang on copies of x, so that messages, not tables, carry the conflict."""
    edges, tables = [], {"x": COIN}
    for i, last in enumerate([[[0.5, 0.5], [1.0, TINY]], [[0.5, 0.5], [1.0, TINY]], [[1.0, 0.0], [0.5, 0.5]]]):
        edges += [("x", f"a{i}"), (f"a{i}", f"b{i}"), (f"b{i}", f"c{i}")]
        tables |= {f"a{i}": COPY, f"b{i}": COPY, f"c{i}": last}
    bn, given = binary(edges, tables), {"c0": "1", "c1": "1", "c2": "1"}
    assert bn.query("x", given).probs.tolist() == [0.0, 1.0]
    assert bn.marginals(given)["a1"].probs.tolist() == [0.0, 1.0]
    assert bn.log_prob_of(given) == pytest.approx(2 * math.log(0.5) + 2 * LOG_TINY, rel=1e-12)


@pytest.mark.parametrize("scale", [TINY, 1.0, 1e300])
def test_the_scale_of_likelihoods_is_no_evidence(scale: float) -> None:
    """Likelihood evidence counts up to a factor, in answers; ln p(evidence) has the factor."""
    bn = binary("a -> b -> c", {"a": [0.3, 0.7], "b": [[0.9, 0.1], [0.4, 0.6]], "c": [[0.8, 0.2], [0.1, 0.9]]})
    soft = {n: [0.25 * scale, 1.0 * scale] for n in ("a", "b", "c")}
    plain = {n: [0.25, 1.0] for n in ("a", "b", "c")}
    assert bn.log_prob_of(soft) == pytest.approx(bn.log_prob_of(plain) + 3 * math.log(scale), rel=1e-12)
    one, two = bn.marginals(soft), bn.marginals(plain)
    for name in bn:
        assert one[name].probs == pytest.approx(two[name].probs, rel=1e-12)
    assert dict(bn.most_probable(soft)) == dict(bn.most_probable(plain))


def test_three_hundred_observed_children() -> None:
    """Naive Bayes: ln of the posterior odds is a sum of logs of ratios."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, (300, 2))
    tables = {f"c{i}": np.column_stack([1 - p[i], p[i]]) for i in range(300)}
    bn = binary([("x", c) for c in tables], {"x": [0.25, 0.75], **tables})
    rows = rng.integers(0, 2, (20, 300))
    seen = np.where(rows[:, :, None] == 1, p, 1 - p)
    logs = np.log([0.25, 0.75]) + np.log(seen).sum(1)
    expected = np.exp(logs - np.logaddexp(logs[:, :1], logs[:, 1:]))
    frame = pd.DataFrame({f"c{i}": rows[:, i].astype(str) for i in range(300)})
    np.testing.assert_allclose(bn.predict_proba(frame, "x").to_numpy(dtype=float), expected, rtol=1e-10, atol=1e-300)
    given = {f"c{i}": str(rows[0, i]) for i in range(300)}
    np.testing.assert_allclose(bn.query("x", given).probs, expected[0], rtol=1e-10)
    np.testing.assert_allclose(bn.marginals(given)["x"].probs, expected[0], rtol=1e-10)
    assert bn.log_prob_of(given) == pytest.approx(float(np.logaddexp(*logs[0])), rel=1e-12)


def test_a_star_of_five_hundred_children() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, (500, 2))
    tables = {f"c{i}": np.column_stack([1 - p[i], p[i]]) for i in range(500)}
    bn = binary([("x", c) for c in tables], {"x": [0.25, 0.75], **tables})
    answers = bn.marginals()
    for i in range(500):
        assert answers[f"c{i}"]["1"] == pytest.approx(0.25 * p[i, 0] + 0.75 * p[i, 1], rel=1e-12)
    assert bn.treewidth == 1
    below = bn.marginals({"x": "1"})
    assert [below[f"c{i}"]["1"] for i in range(500)] == pytest.approx(p[:, 1].tolist(), rel=1e-12)
    seen = bn.query("c0", {"c1": "1"})["1"]
    both, one = (0.25 * p[0, 0] * p[1, 0] + 0.75 * p[0, 1] * p[1, 1]), (0.25 * p[1, 0] + 0.75 * p[1, 1])
    assert seen == pytest.approx(both / one, rel=1e-12)


def test_two_thousand_isolated_nodes() -> None:
    p = np.random.default_rng(2).uniform(0.1, 0.9, 2000)
    bn = binary(sf.Dag([], nodes=[f"x{i}" for i in range(2000)]), {f"x{i}": [1 - p[i], p[i]] for i in range(2000)})
    answers = bn.marginals({"x7": "1"})
    assert answers["x7"].probs.tolist() == [0.0, 1.0]
    assert answers["x1999"]["1"] == pytest.approx(p[1999], rel=1e-14)
    assert bn.log_prob_of({f"x{i}": "1" for i in range(2000)}) == pytest.approx(np.log(p).sum(), rel=1e-12)
    assert bn.most_probable() == {f"x{i}": str(int(p[i] > 0.5)) for i in range(2000)}
    assert bn.query(["x3", "x4"], {"x5": "0"})["1", "0"] == pytest.approx(p[3] * (1 - p[4]), rel=1e-14)
    assert bn.treewidth == 0


def test_one_state_and_one_node() -> None:
    """A variable of one state is certain; it may be a parent, a child, observed or asked for."""
    only = sf.BayesNet("x", {"x": [1.0]}, {"x": ["a"]})
    assert only.query("x").probs.tolist() == [1.0]
    assert only.marginals({"x": "a"})["x"].probs.tolist() == [1.0]
    assert only.log_prob_of({"x": "a"}) == 0.0
    assert dict(only.most_probable()) == {"x": "a"}
    tables = {"a": [[1.0], [1.0]], "x": [0.25, 0.75], "b": [[0.5, 0.5]]}
    bn = sf.BayesNet("x -> a -> b", tables, {"a": ["only"], "x": ["0", "1"], "b": ["0", "1"]})
    assert bn.query(["b", "a", "x"], {}).probs.shape == (2, 1, 2)
    assert bn.query("x", {"a": "only", "b": "1"}).probs.tolist() == pytest.approx([0.25, 0.75])
    assert bn.log_prob_of({"a": "only"}) == pytest.approx(0.0, abs=1e-15)


def dense(n: int = 60) -> sf.BayesNet:
    """Coins, and for every pair of them a child: the moral graph of the coins is complete, though every table is small."""
    pairs = {f"c{i}_{j}": (f"x{i}", f"x{j}") for i in range(n) for j in range(i)}
    edges = [(parent, child) for child, parents in pairs.items() for parent in parents]
    table = [[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.2, 0.8]]]
    return binary(edges, {**{f"x{i}": COIN for i in range(n)}, **dict.fromkeys(pairs, table)})


def test_too_dense_is_refused_before_memory_is_taken() -> None:
    """With its size, and with the way out."""
    bn = dense()
    seen = {n: "1" for n in bn if n.startswith("c")}
    assert bn.treewidth == 59
    for ask in (lambda: bn.query("x0", seen), lambda: bn.marginals(seen), lambda: bn.log_prob_of(seen)):
        with pytest.raises(TooLarge, match=r"(?s)\d.*LikelihoodWeighting"):
            ask()
    with pytest.raises(TooLarge):
        bn.predict_proba(pd.DataFrame({n: [s] for n, s in seen.items()}), "x0")
    with pytest.raises(TooLarge):
        bn.most_probable(seen)


def test_a_dense_network_answers_what_does_not_need_all_of_it() -> None:
    """Barren children are left out, and observed coins cut it into pieces."""
    bn = dense()
    assert bn.query("x0").probs.tolist() == pytest.approx(COIN)
    assert bn.query("c1_0")["1"] == pytest.approx((0.1 + 0.6 + 0.7 + 0.8) / 4)
    assert bn.query("x0", {"c1_0": "1"})["1"] == pytest.approx((0.6 + 0.8) / (0.1 + 0.6 + 0.7 + 0.8))
    coins = {f"x{i}": "1" for i in range(4, 60)}
    seen = {**coins, **{n: "1" for n in bn if n.startswith("c")}}
    small = dense(4)
    given = {n: "1" for n in small if n.startswith("c")}
    for k in range(4):  # the 56 children that x_k has with an observed coin are so many likelihoods of its states
        given[f"x{k}"] = [0.7**56, 0.8**56]
    assert bn.query("x0", seen).probs == pytest.approx(small.marginals(given)["x0"].probs, rel=1e-10)
    frame = pd.DataFrame({n: [s] for n, s in seen.items()})
    assert bn.predict_proba(frame, "x0").to_numpy(dtype=float)[0] == pytest.approx(bn.query("x0", seen).probs, rel=1e-10)


def test_what_comes_up_and_what_comes_down_may_vanish_together() -> None:
    """A marginal is the product of two tables, either of which holds its smallest cells: found by an auditor."""
    small = 10.0**-107.6
    variables = [sf.Finite(x, list("0123")) for x in "vw"] + [sf.Finite(x, ["n", "y"]) for x in "abc"]
    tables = {"a": [1, 0, small, 3 * small], "b": [0, 1, small, small], "c": [1, 1, small, small]}
    seen = {x: [[1 - p, p] for p in column] for x, column in tables.items()}
    bn = sf.BayesNet("v -> w; v -> a; w -> b; w -> c", {"v": [0.25] * 4, "w": np.eye(4), **seen}, variables)
    given = dict.fromkeys("abc", "y")
    assert bn.marginals(given)["v"].probs.tolist() == pytest.approx([0, 0, 0.25, 0.75])
    assert bn.query("v", given).probs.tolist() == pytest.approx([0, 0, 0.25, 0.75])


@pytest.mark.parametrize("scale", [1.0, 1e-124, 1e-300])
def test_likelihoods_that_vanish_in_the_table(scale: float) -> None:
    """p(x)·likelihood may be below all floats: then likelihoods are factors of their own."""
    bn = sf.BayesNet("x -> y", {"x": [1e-200, 3e-200, 1.0], "y": [[0.5, 0.5]] * 3}, {"x": list("abc"), "y": list("ny")})
    given = {"x": [1e-120 * scale if scale > 1e-150 else scale] * 2 + [0.0], "y": "y"}
    likelihood = given["x"][0]
    assert bn.query("x", given).probs.tolist() == pytest.approx([0.25, 0.75, 0.0])
    assert bn.marginals(given)["x"].probs.tolist() == pytest.approx([0.25, 0.75, 0.0])
    assert bn.log_prob_of(given) == pytest.approx(np.log(2.0) - 200 * np.log(10.0) + np.log(likelihood), rel=1e-12)
    assert dict(bn.most_probable(given, ["x"])) == {"x": "b"}
    mixed = {"x": [1.0, 1e-150, 1e-200]}
    assert bn.query("x", mixed).probs.tolist() == pytest.approx([0.5, 0.0, 0.5])


def test_long_work_ends_as_short_work_does() -> None:
    """In a thread of its own, from which results and errors come back."""
    assert interruptible(lambda: 7, 1e12) == 7
    with pytest.raises(ModelError, match="so it is"):
        interruptible(lambda: refuse("so it is"), 1e12)


def refuse(why: str) -> None:
    raise ModelError(why)


def test_ctrl_c_is_heard_while_a_large_tree_runs() -> None:
    """The kernel goes on in its thread; the caller is free."""
    script = (
        "import os, signal, threading, time\n"
        "from suffice.numerics.inference.finite.questions import interruptible\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try: interruptible(lambda: time.sleep(60), 1e12)\n"
        "except KeyboardInterrupt: print('stopped')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    assert done.stdout == "stopped\n"


def test_likelihoods_that_differ_by_more_than_floats_hold() -> None:
    """Scaled by their largest, which the table rules out, the others would vanish: found by an auditor."""
    bn = sf.BayesNet("x", {"x": [0.0, 0.5, 0.5]}, {"x": list("abc")})
    for small in (1e-20, 1e-21, 1e-300):
        given = {"x": [1e303, small, 1.4 * small]}
        assert bn.query("x", given).probs.tolist() == pytest.approx([0, 1 / 2.4, 1.4 / 2.4])
        assert bn.marginals(given)["x"].probs.tolist() == pytest.approx([0, 1 / 2.4, 1.4 / 2.4])
        assert bn.log_prob_of(given) == pytest.approx(math.log(1.2) + math.log(small), rel=1e-13)
        assert dict(bn.most_probable(given, ["x"])) == {"x": "c"}


def test_the_tables_of_one_row_are_gone_before_room_is_made_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network.of([2, 2], [((0,), 0, np.array(COIN)), ((0, 1), 1, np.array([[0.9, 0.1], [0.2, 0.8]]))])
    rows, room_for, buffers = np.array([[-1, 0], [-1, 1]], np.int32), questions.room_for, list[Any]()

    def watched(tree: Any, numbers: float) -> Any:
        assert not any(buffer() is not None for buffer in buffers)
        room = room_for(tree, numbers)
        buffers.append(weakref.ref(room[2]))
        return room

    monkeypatch.setattr(questions, "MOST_VARIABLES", 0)  # so each row is asked of a tree
    monkeypatch.setattr(questions, "room_for", watched)
    probs, _ = questions.posteriors(network, (0,), network.all_factors, rows, network.tables[None])
    assert probs == pytest.approx(np.array([[9.0, 2.0], [1.0, 8.0]]) / [[11.0], [9.0]])
    assert len(buffers) == 2
