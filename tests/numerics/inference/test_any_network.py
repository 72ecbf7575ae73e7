"""Any network, any question: the answer is a distribution, or the refusal a `SufficeError`; never a crash, NaN or another error.

Networks are drawn from a seed: 1 to 60 nodes, up to 24 parents, 1 to 300 states, tables smooth, full of zeros, deterministic or
with probabilities down to 1e-300. Evidence is hard, soft, both, often impossible, and sometimes nonsense.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import ModelError, SufficeError

MOST_CELLS, LARGE = 2**12, 2**19
"""Cells of a table; some networks have a large one."""
HEAVY = 3e6
"""Cells of a junction tree that takes too long for a test: such a network is thinned out."""
SUM = 1e-9


class Drawn:
    """A random network and random questions to it."""

    def __init__(self, seed: int, most_nodes: int = 60) -> None:
        self.rng, self.most_nodes = np.random.default_rng(seed), most_nodes
        self.bn = self.network()

    def some(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def network(self) -> sf.BayesNet:
        """Fewer and fewer parents are tried until exact answers do not take long."""
        n = int(self.rng.integers(1, min(self.some(3, 9, 24, 60), self.most_nodes), endpoint=True))
        sizes = self.sizes(n)
        for most in (self.some(1, 2, 4, 24), 2, 1):
            bn = self.tables(sizes, self.parents(sizes, most))
            if bn.junction_tree.n_cells < HEAVY:
                break
        return bn

    def sizes(self, n: int) -> Any:
        """Mostly few states; of some networks one state is the rule, and of some a few nodes have hundreds."""
        sizes = self.rng.integers(1, self.some(2, 3, 3, 5), n, endpoint=True)
        sizes[self.rng.random(n) < self.some(0.0, 0.0, 0.5, 0.9)] = 1
        if self.rng.random() < 0.3:
            sizes[self.rng.integers(0, n, 2)] = self.rng.integers(1, 300, 2, endpoint=True)
        return sizes

    def parents(self, sizes: Any, most: int) -> list[list[int]]:
        """Parents among the nodes shortly before, as long as the table has room for them; the last may have many."""
        reach, result = self.some(3, 30, 60), []
        for child, size in enumerate(sizes):
            before, room = self.rng.permutation(np.arange(max(0, child - reach), child)), MOST_CELLS // size
            n_parents = int(self.rng.integers(0, most, endpoint=True))
            if child == len(sizes) - 1 and self.rng.random() < 0.3:
                before, room, n_parents = self.rng.permutation(child), LARGE // size, 24
            chosen: list[int] = []
            for p in before:
                if sizes[p] <= room and len(chosen) < n_parents:
                    room //= sizes[p]
                    chosen.append(int(p))
            result.append(chosen)
        return result

    def tables(self, sizes: Any, parents: list[list[int]]) -> sf.BayesNet:
        """The network, its nodes under names whose order is not that of the graph."""
        names = [f"n{i}" for i in self.rng.permutation(len(sizes))]
        variables = [sf.Finite(name, [f"s{k}" for k in range(size)]) for name, size in zip(names, sizes, strict=True)]
        dag = {names[c]: [names[p] for p in own] for c, own in enumerate(parents)}
        kind = self.some("smooth", "zeros", "sure", "tiny", "mixed")
        tables = {names[c]: self.table([*sizes[own], sizes[c]], kind) for c, own in enumerate(parents)}
        return sf.BayesNet(dag, tables, variables)

    def table(self, shape: Any, kind: str) -> Any:
        kind = self.some("smooth", "zeros", "sure", "tiny") if kind == "mixed" else kind
        table = self.rng.random(shape) + 1e-3
        if kind == "zeros":
            table *= self.rng.random(shape) < 0.5
            table[..., 0] += 1e-3
        if kind == "sure":
            table = np.eye(shape[-1])[self.rng.integers(0, shape[-1], shape[:-1])]
        if kind == "tiny":
            table **= self.some(50, 100)
        return table / table.sum(-1, keepdims=True)

    def name(self) -> str:
        return str(self.rng.choice(list(self.bn)))

    def names(self) -> list[str]:
        return list(dict.fromkeys(self.name() for _ in range(self.rng.integers(1, 4))))

    def state(self, name: str) -> str:
        return str(self.rng.choice(self.bn.variables[name].states))

    def likelihoods(self, name: str) -> Any:
        """One number per state, some 0, rarely all, some too large or small for their products to be floats."""
        n = self.bn.variables[name].n_states
        numbers = self.rng.random(n) * (self.rng.random(n) < self.some(0.5, 1.0)) * self.some(1.0, 1e-300, 1e300)
        return numbers if numbers.any() or self.rng.random() < 0.05 else np.ones(n)

    def given(self, *asked: str) -> dict[str, Any]:
        """Evidence that may be impossible; now and then it is nonsense, or about what is asked for."""
        other = [n for n in self.bn if n not in asked or self.rng.random() < 0.02]
        seen = self.rng.permutation(other)[: self.rng.integers(0, self.some(2, 5, 61))]
        soft = self.some(0.0, 0.5, 1.0)
        result = {str(n): self.likelihoods(n) if self.rng.random() < soft else self.state(n) for n in seen}
        if self.rng.random() < 0.02:
            result[self.name()] = self.some("no such state", [0.5], float("nan"), [-1.0, 2.0], None)
        return result

    def rows(self, n: int = 6) -> dict[str, list[Any]]:
        """Rows with gaps, states drawn one by one, so that many are impossible."""
        gaps = self.some(0.0, 0.3, 0.9)
        return {name: [None if self.rng.random() < gaps else self.state(name) for _ in range(n)] for name in self.bn}


def assert_sums_to_one(probs: Any) -> None:
    assert np.isfinite(probs).all()
    assert np.all(probs >= 0.0)
    assert abs(np.sum(probs) - 1.0) < SUM


def assert_log_prob(log_prob: float) -> None:
    assert not np.isnan(log_prob)
    assert log_prob < np.inf  # but it may be above 0: likelihoods are given up to a factor


def ask_query(d: Drawn) -> None:
    target = d.name()
    given = d.given(target)
    if d.bn.log_prob_of(given) == -np.inf:
        with pytest.raises(ModelError):
            d.bn.query(target, given)
        return
    answer = d.bn.query(target, given)
    assert_sums_to_one(answer.probs)
    np.testing.assert_allclose(d.bn.marginals(given)[target].probs, answer.probs, rtol=1e-6, atol=1e-12)


def ask_joint(d: Drawn) -> None:
    names = d.names()
    answer = d.bn.query(names, d.given(*names))
    assert_sums_to_one(answer.probs)
    assert answer.probs.shape == tuple(d.bn.variables[n].n_states for n in names)


def ask_marginals(d: Drawn) -> None:
    given = d.given()
    answer = d.bn.marginals(given)
    for name in answer:
        assert_sums_to_one(answer[name].probs)
    assert answer.log_prob_of_evidence == pytest.approx(d.bn.log_prob_of(given), rel=1e-6, abs=1e-9)


def ask_log_prob_of(d: Drawn) -> None:
    assert_log_prob(d.bn.log_prob_of(d.given()))


def ask_most_probable(d: Drawn) -> None:
    targets = d.some(None, d.names())
    given = d.given(*targets or ())
    best = d.bn.most_probable(given, targets)
    assert all(best[n] in d.bn.variables[n].states for n in best)
    assert 0.0 <= best.probability <= 1.0 + SUM
    hard = {n: s for n, s in given.items() if isinstance(s, str)}
    assert d.bn.log_prob_of({**hard, **best}) > -np.inf


def ask_predict_proba(d: Drawn) -> None:
    """A row has NaN if it is impossible, and only then."""
    rows, target = d.rows(), d.name()
    frame = d.bn.predict_proba(rows, target)
    probs = np.stack([np.asarray(frame[s]) for s in d.bn.variables[target].states], axis=1)
    for i, line in enumerate(probs):
        seen = {n: column[i] for n, column in rows.items() if column[i] is not None and n != target}
        if d.bn.log_prob_of(seen) == -np.inf:
            assert np.isnan(line).all()
        else:
            assert_sums_to_one(line)


def ask_predict(d: Drawn) -> None:
    target = d.name()
    assert set(d.bn.predict(d.rows(), target)) <= {None, *d.bn.variables[target].states}


def ask_impute(d: Drawn) -> None:
    how: dict[str, Any] = d.some({}, {"joint": True}, {"draws": 2})
    filled = d.bn.impute(d.rows(), **how)
    for frame in filled if isinstance(filled, list) else [filled]:
        assert all(set(frame[n]) <= {None, *d.bn.variables[n].states} for n in d.bn)


def ask_log_prob(d: Drawn) -> None:
    rows = d.rows()
    answer = d.bn.log_prob(rows)
    for i, log_prob in enumerate(answer):
        assert_log_prob(log_prob)
        seen = {n: column[i] for n, column in rows.items() if column[i] is not None}
        assert log_prob == pytest.approx(d.bn.log_prob_of(seen), rel=1e-6, abs=1e-9)


def ask_sample(d: Drawn) -> None:
    rows = d.bn.sample(5, seed=1)
    assert rows.num_rows == 5
    assert (d.bn.log_prob(rows) > -np.inf).all()


def ask_do(d: Drawn) -> None:
    name = d.name()
    n = d.bn.variables[name].n_states
    done = d.bn.do({name: d.some(d.state(name), np.full(n, 1.0 / n), d.rng.dirichlet(np.ones(n)))})
    assert_sums_to_one(done.query(d.name()).probs)


def ask_entropy(d: Drawn) -> None:
    assert -SUM < d.bn.entropy() < np.inf


def ask_by_sampling(d: Drawn) -> None:
    method = d.some(sf.methods.LikelihoodWeighting(200), sf.methods.Gibbs(200))
    names = d.names()
    assert_sums_to_one(d.bn.query(names, d.given(*names), method=method).probs)


def ask_interval(d: Drawn) -> None:
    fitted = sf.fit(d.bn, d.bn.sample(20, seed=0), prior=sf.BDeu(1))
    target = d.name()
    answer = fitted.query(target, d.given(target), interval=0.9)
    assert_sums_to_one(answer.probs)
    lower, upper = answer.interval
    assert np.all((lower >= 0.0) & (lower <= upper) & (upper <= 1.0 + SUM))


OF_EVIDENCE: list[Callable[[Drawn], None]] = [
    ask_query,
    ask_joint,
    ask_marginals,
    ask_log_prob_of,
    ask_most_probable,
    ask_by_sampling,
]
ALWAYS_ANSWERED: list[Callable[[Drawn], None]] = [
    ask_predict_proba,
    ask_predict,
    ask_impute,
    ask_log_prob,
    ask_sample,
    ask_do,
    ask_entropy,
]


@pytest.mark.parametrize("seed", range(50))
def test_an_answer_or_a_refusal(seed: int) -> None:
    drawn = Drawn(seed)
    for question in ALWAYS_ANSWERED:
        question(drawn)
    for question in OF_EVIDENCE:
        with suppress(SufficeError):
            question(drawn)


@pytest.mark.parametrize("seed", range(10))
def test_an_interval_or_a_refusal(seed: int) -> None:
    """Of small networks: a thousand are drawn for each."""
    with suppress(SufficeError):
        ask_interval(Drawn(seed, most_nodes=8))
