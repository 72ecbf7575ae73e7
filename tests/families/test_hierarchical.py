"""Priors whose numbers the data chooses: pooling of rows, and strengths by maximum evidence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln, softmax

import suffice as sf
from suffice.errors import FitError, SufficeNote
from suffice.families.categorical import TableNode
from suffice.families.hierarchical.hierarchical import HierarchicalDirichlet, pool_rows
from suffice.families.priors.empirical_bayes import (
    LOWEST,
    EmpiricalBayes,
    _digamma_rise,
    _mean_at,
    _Profile,
    _Rows,
    _trigamma_fall,
    highest_point,
)
from suffice.families.priors.priors import K2, BDeu, BDs, Dirichlet, Gamma, NormalInverseGamma, Several
from suffice.learning.graph_score import by_evidence
from suffice.models.divergence import BDe
from suffice.statistics import Counts

SOME = np.array([[8.0, 2, 1], [3, 7, 0], [6, 4, 2], [1, 9, 0]])


def polya(counts, s, m):
    """The evidence, term by term."""
    a = s * np.asarray(m)
    rows = gammaln(a.sum()) - gammaln(a.sum() + counts.sum(axis=1))
    return float((rows + (gammaln(a + counts) - gammaln(a)).sum(axis=1)).sum())


def drawn(s, m, n_rows, n, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(n, p) for p in rng.dirichlet(s * np.asarray(m), n_rows)], dtype=float)


def table(counts, names="xy"):
    """Rows of data with these counts of the last variable given the first."""
    first = [f"u{i:03}" for i in range(len(counts))]
    cells = [(u, f"s{k}") for u, row in zip(first, counts, strict=True) for k, n in enumerate(row) for _ in range(int(n))]
    return {names[0]: [c[0] for c in cells], names[1]: [c[1] for c in cells]}


@pytest.mark.parametrize("counts", [SOME, SOME[:, :2] * 1.37, drawn(5.0, [0.1, 0.2, 0.3, 0.4], 30, 8)])
def test_strength_and_mean_are_those_of_the_largest_evidence(counts):
    K = counts.shape[1]

    def loss(x):
        m = softmax(np.append(x[1:], 0.0))
        return -polya(counts, np.exp(x[0]), m) - np.log(m).sum() / K

    starts = ([np.log(s), *np.zeros(K - 1)] for s in (0.1, 1.0, 10.0, 100.0))
    tried = [minimize(loss, x, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 9000}) for x in starts]
    best = min(tried, key=lambda r: r.fun)
    found = pool_rows(counts)
    assert found.strength == pytest.approx(np.exp(best.x[0]), rel=1e-5)
    assert found.mean == pytest.approx(softmax(np.append(best.x[1:], 0.0)), rel=1e-5)
    assert found.log_evidence == pytest.approx(polya(counts, found.strength, found.mean), abs=1e-10)
    assert -found.log_evidence - np.log(found.mean).sum() / K <= best.fun + 1e-9


def test_what_is_given_is_kept_and_the_rest_is_best():
    m = np.array([0.5, 0.4, 0.1])
    found = pool_rows(SOME, mean=m)
    best = minimize_scalar(lambda t: -polya(SOME, np.exp(t), m), bounds=(-6, 6), method="bounded", options={"xatol": 1e-10})
    assert found.strength == pytest.approx(np.exp(best.x), rel=1e-6)
    assert found.mean == pytest.approx(m)
    assert pool_rows(SOME, 3.0, m) == (3.0, pytest.approx(m), pytest.approx(polya(SOME, 3.0, m)))
    found = pool_rows(SOME, strength=3.0)
    for other in itertools.permutations([1e-3, 0.0, -1e-3]):
        near = found.mean + other
        assert polya(SOME, 3.0, near) + np.log(near).sum() / 3 < found.log_evidence + np.log(found.mean).sum() / 3


def test_slopes_are_derivatives():
    rows = _Rows.of(SOME)
    profile = _Profile(rows, None)
    for t in (-3.0, 0.0, 2.0, 6.0):
        numeric = (profile.height(t + 1e-4) - profile.height(t - 1e-4)) / 2e-4
        assert profile.slope(t) == pytest.approx(numeric, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("a", [1e-8, 0.3, 5.0, 9.9e3, 1.01e4, 2e4, 1e12])
def test_differences_of_digammas_are_sums(a):
    for n in (1, 7, 200):
        terms = 1.0 / (a + np.arange(n))
        assert _digamma_rise(np.array([a]), np.array([float(n)]))[0] == pytest.approx(terms.sum(), rel=1e-9)
        assert _trigamma_fall(np.array([a]), np.array([float(n)]))[0] == pytest.approx((terms**2).sum(), rel=1e-7)


def test_rows_drawn_around_a_mean_give_it_back():
    for s in (0.3, 3.0, 30.0):
        found = pool_rows(drawn(s, [0.1, 0.2, 0.7], 3000, 25, seed=3))
        assert found.strength == pytest.approx(s, rel=0.1)
        assert found.mean == pytest.approx([0.1, 0.2, 0.7], abs=0.02)


def test_rows_that_are_alike_are_pooled_up_to_their_weight_and_rows_of_one_state_not_at_all():
    assert pool_rows([[8, 2], [8, 2], [8, 2]]).strength == 30.0
    assert pool_rows([[8, 0], [0, 5], [3, 0]]).strength == LOWEST
    alone = pool_rows([[8, 2], [0, 0]])
    assert (alone.strength, alone.mean.tolist()) == (1.0, [0.5, 0.5])
    assert pool_rows(np.zeros((2, 3))).log_evidence == 0.0
    assert pool_rows([[4], [5]]).log_evidence == 0.0


def test_permuting_rows_or_states_permutes_the_answer_and_empty_rows_change_nothing():
    found, rows = pool_rows(SOME), pool_rows(np.vstack([SOME[::-1], np.zeros((2, 3))]))
    states = pool_rows(SOME[:, [2, 0, 1]])
    assert rows.strength == found.strength
    assert states.strength == pytest.approx(found.strength, rel=1e-9)
    assert states.mean == pytest.approx(found.mean[[2, 0, 1]], rel=1e-9)


def test_a_state_that_was_never_seen_keeps_a_share():
    found = pool_rows([[8, 2, 0], [3, 7, 0], [0, 9, 0]])
    assert 0.0 < found.mean[2] < 0.1
    assert found.mean.sum() == pytest.approx(1.0)


def test_huge_counts_are_as_proportions():
    large, larger = (pool_rows(np.array([[8.0, 2], [3, 7], [5, 5], [6, 4]]) * scale) for scale in (1e6, 1e12))
    assert larger.strength == pytest.approx(large.strength, rel=1e-4)
    assert larger.mean == pytest.approx(large.mean, rel=1e-4)
    assert np.isfinite(larger.log_evidence)
    tiny = pool_rows(np.array([[8.0, 2], [3, 7]]) * 1e-9)
    assert np.all(np.isfinite([tiny.strength, *tiny.mean, tiny.log_evidence]))


def test_newton_ends_where_nothing_is_gained():
    rows = _Rows.of(np.array([[1e9, 1.0, 0.0, 0.0], [5.0, 0.0, 1e5, 0.0], [0.0, 0.0, 3.0, 0.0]]))
    for s in (1e-3, 1.0, 1e3, 1e9):
        alpha = s * _mean_at(rows, s, np.array([0.01, 0.01, 0.01, 0.97]))
        g = rows.by_state(_digamma_rise(alpha[rows.state], rows.value)) + 0.25 / alpha
        assert (alpha * (g - g @ alpha / s)) / (1.0 + abs(g @ alpha)) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("wrong", [[[1, -1]], [[np.nan, 1]], [1, 2], [["a", "b"]], np.zeros((2, 0))])
def test_counts_that_are_none_are_refused(wrong):
    with pytest.raises(FitError, match="counts to pool"):
        pool_rows(wrong)


def test_wrong_numbers_are_refused():
    for s in (0, -1, np.inf, "a", True):
        with pytest.raises(FitError, match="strength"):
            pool_rows(SOME, strength=s)
        with pytest.raises(FitError, match="strength"):
            HierarchicalDirichlet(strength=s)
    with pytest.raises(FitError, match="3 probabilities"):
        pool_rows(SOME, mean=[0.5, 0.5])
    with pytest.raises(FitError, match="rules out state number 2"):
        pool_rows(SOME, mean=[0.5, 0.5, 0.0])
    with pytest.raises(FitError, match="rules out state number 1,"):
        pool_rows([[0, 3, 0], [0, 1, 1]], mean=[0, 0, 1.0])
    with pytest.raises(FitError, match="given by node"):
        HierarchicalDirichlet(mean=[0.5, 0.5])


def test_fit_shrinks_rows_towards_their_mean():
    counts = drawn(4.0, [0.2, 0.3, 0.5], 40, 6)
    bn = sf.fit("x -> y", table(counts), prior=HierarchicalDirichlet())
    found = pool_rows(counts)
    prior = found.strength * found.mean
    assert bn["y"].probs == pytest.approx((counts + prior) / (counts + prior).sum(axis=1, keepdims=True), rel=1e-9)
    assert bn.prior.strength["y"] == pytest.approx(found.strength)
    assert bn.prior.mean["y"] == pytest.approx(dict(zip(["s0", "s1", "s2"], found.mean, strict=True)))
    assert bn.prior.strength["x"] == 1.0
    lower, upper = bn["y"].interval(0.9)
    assert np.all(lower < bn["y"].probs)
    assert np.all(bn["y"].probs < upper)
    assert sf.score("x -> y", table(counts), sf.Evidence(HierarchicalDirichlet()), by_node=True)["y"] == pytest.approx(
        found.log_evidence
    )


def test_partial_pooling_foretells_better_than_none_or_all():
    truth = np.random.default_rng(5).dirichlet([2.0, 3.0, 5.0], 200)
    rng = np.random.default_rng(6)
    seen, more = (np.array([rng.multinomial(n, p) for p in truth], float) for n in (5, 200))

    def log_loss(probs):
        return -float((more * np.log(probs)).sum())

    s, m, _ = pool_rows(seen)
    partial = log_loss((seen + s * m) / (5 + s))
    assert partial < log_loss((seen + 1 / 3) / 6)
    assert partial < log_loss(np.broadcast_to(seen.sum(axis=0) / seen.sum(), seen.shape))


def test_the_chosen_numbers_stay_and_the_evidence_is_a_chain():
    a, b = table(drawn(4.0, [0.2, 0.8], 12, 9)), table(drawn(4.0, [0.5, 0.5], 12, 5, seed=1))
    bn = sf.fit("x -> y", a, prior=HierarchicalDirichlet())
    later = bn.update(b)
    assert later.prior == bn.prior
    seen, more = bn["y"].seen, later["y"].seen - bn["y"].seen
    family, prior, y = TableNode(), bn["y"].imagined, bn.variables["y"]
    whole = family.log_evidence(y, seen + more, prior)
    assert whole == pytest.approx(family.log_evidence(y, seen, prior) + family.log_evidence(y, more, prior + seen), abs=1e-9)
    assert sf.score("x -> y", later.statistics, sf.Evidence(bn.prior), by_node=True)["y"] == pytest.approx(whole)
    again = sf.fit("x -> y", bn.statistics, prior=bn.prior)
    assert again == bn


def test_nodes_at_a_bound_are_named():
    with pytest.warns(SufficeNote, match="rows of 'y' are no less alike"):
        sf.fit("x -> y", table([[8, 2], [8, 2], [16, 4]]), prior=HierarchicalDirichlet())
    with pytest.warns(SufficeNote, match="rows of 'y' have a state each"):
        sf.fit("x -> y", table([[8, 0], [0, 2]]), prior=HierarchicalDirichlet())


def test_numbers_by_node_and_nodes_that_are_not_there():
    rows = table(SOME)
    prior = HierarchicalDirichlet(strength={"y": 2.0}, mean={"y": [0.2, 0.3, 0.5]})
    assert sf.fit("x -> y", rows, prior=prior)["y"].imagined.dense()[0] == pytest.approx([0.4, 0.6, 1.0])
    even = sf.fit("x -> y", rows, prior=HierarchicalDirichlet(mean={"y": None}))
    assert even.prior.strength["y"] == pytest.approx(pool_rows(SOME, mean=[1 / 3] * 3).strength)
    assert even["y"].imagined.dense()[0] == pytest.approx(even.prior.strength["y"] / 3)
    with pytest.raises(FitError, match="'yy', which is not in the graph; did you mean 'y'"):
        sf.fit("x -> y", rows, prior=HierarchicalDirichlet(strength={"yy": 2.0}))
    with pytest.raises(FitError, match="'y' needs 3 numbers"):
        sf.fit("x -> y", rows, prior=HierarchicalDirichlet(mean={"y": [0.2, 0.8]}))
    with pytest.raises(FitError, match="'y' must be probabilities"):
        sf.em("x -> y", rows, prior=HierarchicalDirichlet(strength=1.0, mean={"x": None, "y": [0.5, 0.7, -0.2]}))
    with pytest.raises(FitError, match="differ in the state 's9'"):
        sf.fit("x -> y", rows, prior=HierarchicalDirichlet(mean={"y": {"s0": 0.5, "s1": 0.25, "s9": 0.25}}))
    bn = sf.fit("x -> y", rows, prior=HierarchicalDirichlet())
    with pytest.raises(FitError, match="differ in the state 'new'"):
        bn.update({"x": ["u000"], "y": ["new"]})
    assert bn.update({"x": ["u999"], "y": ["s0"]})["y"].probs.shape == (5, 3)


def test_incomplete_rows_are_refused_with_a_way_out():
    rows = {"x": ["a", "b", "a", "b"], "y": ["u", "v", None, "v"]}
    with pytest.raises(FitError, match="by_evidence"):
        sf.fit("x -> y", rows, prior=HierarchicalDirichlet())
    with pytest.raises(FitError, match="by_evidence"):
        sf.em("x -> y", rows, prior=EmpiricalBayes(BDeu()))
    complete = {"x": ["a", "b", "b"], "y": ["u", "v", "v"]}
    prior = by_evidence("x -> y", complete, HierarchicalDirichlet())
    assert sf.em("x -> y", rows, prior=prior).model.prior == prior


def test_searches_refuse_what_each_family_would_choose_for_itself():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 600)
    rows = {"x": x.astype(str), "y": ((x + (rng.random(600) < 0.2)) % 3).astype(str), "z": rng.integers(0, 2, 600).astype(str)}
    for prior in (EmpiricalBayes(BDeu()), HierarchicalDirichlet()):
        with pytest.raises(FitError, match="first"):
            sf.search(rows, score=sf.Evidence(prior))
    chosen = by_evidence("x -> y; z", rows, HierarchicalDirichlet())
    assert sf.search(rows, score=sf.Evidence(chosen)).dag.cpdag() == sf.Dag("x -> y; z").cpdag()


def test_tied_nodes_are_pooled_by_what_they_saw_together():
    rng = np.random.default_rng(2)
    u = rng.integers(0, 5, 300)
    rows = {"u": u.astype(str), "a": (rng.random(300) < u / 5).astype(str), "b": (rng.random(300) < u / 5).astype(str)}
    bn = sf.fit("u -> a; u -> b", rows, prior=HierarchicalDirichlet(), shared=[("a", "b")])
    both = bn["a"].seen.dense()
    assert bn["a"].imagined.dense()[0] == pytest.approx((found := pool_rows(both)).strength * found.mean)
    assert bn["b"].imagined.dense() == pytest.approx(bn["a"].imagined.dense())
    one = sf.fit("u -> a; u -> b", rows, prior=EmpiricalBayes(Dirichlet()), shared=[("a", "b")])
    parts = [both, bn["u"].seen.dense()[None]]
    best = minimize_scalar(
        lambda t: -sum(polya(c, np.exp(t) * c.shape[1], np.full(c.shape[1], 1 / c.shape[1])) for c in parts),
        bounds=(-5, 5),
        method="bounded",
    )
    assert one["a"].imagined.dense()[0, 0] == pytest.approx(np.exp(best.x), rel=1e-3)


@pytest.fixture(scope="module")
def asia():
    return sf.load("asia"), sf.load("asia").sample(500, seed=1)


@pytest.mark.parametrize(("prior", "name"), [(BDeu(), "ess"), (Dirichlet(), "alpha")])
def test_the_strength_is_that_of_the_largest_evidence(asia, prior, name):
    network, rows = asia
    statistics = sf.gather(rows, network.dag)

    def evidence(t):
        return sf.score(network.dag, statistics, sf.Evidence(type(prior)(np.exp(t))))

    bn = sf.fit(network.dag, rows, prior=EmpiricalBayes(prior))
    near = max(np.linspace(-9, 9, 41), key=evidence)
    best = max(near + np.linspace(-0.45, 0.45, 21), key=evidence)
    chosen = getattr(bn.prior, name)
    assert type(bn.prior) is type(prior)
    assert np.log(chosen) == pytest.approx(best, abs=0.05)
    assert evidence(np.log(chosen)) >= max(evidence(np.log(chosen) + h) for h in (-0.01, 0.01, best - np.log(chosen)))
    assert getattr(by_evidence(network.dag, statistics, prior), name) == pytest.approx(chosen, rel=1e-6)
    assert sf.score(network.dag, rows, sf.Evidence(EmpiricalBayes(prior))) == pytest.approx(evidence(np.log(chosen)))
    assert bn.update(rows).prior == bn.prior
    assert bn == sf.fit(network.dag, rows, prior=bn.prior)


def test_other_priors_have_strengths_as_well(asia):
    network, rows = asia
    uniform = sf.fit(network.dag, rows, prior=BDeu(1e6))
    chosen = by_evidence(network.dag, rows, BDe(network, 1.0))
    assert isinstance(chosen, BDe)
    assert chosen.ess > by_evidence(network.dag, rows, BDe(uniform, 1.0)).ess
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, 400)
    rows = {"x": x.astype(str), "n": rng.poisson(2.0 + x), "r": rng.normal(x, 1.0)}
    data = sf.scan(rows, variables={"n": sf.Count})
    dag = sf.Dag("x -> n; x -> r")
    found = by_evidence(dag, data, (BDeu(), NormalInverseGamma(), Gamma()))
    assert isinstance(found, Several)
    for part, name, node in zip(found.priors[1:], ("count", "shape"), ("r", "n"), strict=True):
        best, kind = getattr(part, name), type(part)

        def evidence(x, kind=kind, name=name, node=node):
            free = {"rate": None} if kind is Gamma else {}
            prior = (BDeu(1), *(kind(**{name: x}, **free) if k is kind else k() for k in (NormalInverseGamma, Gamma)))
            return sf.score(dag, data, sf.Evidence(prior), by_node=True)[node]

        assert evidence(best) >= max(evidence(best * h) for h in (0.5, 0.97, 1.03, 2.0))
    bn = sf.fit(dag, data, prior=(EmpiricalBayes(BDeu()), NormalInverseGamma(), Gamma()))
    assert bn.prior.priors[0].ess == pytest.approx(found.priors[0].ess, rel=1e-6)


def test_evidence_that_keeps_rising_stops_at_a_bound_and_says_so():
    with pytest.warns(SufficeNote, match=r"ess of BDeu goes to infinity: it stops at 1e\+08"):
        assert by_evidence("x", {"x": ["a", "b"] * 20}, BDeu()).ess == 1e8
    with pytest.warns(SufficeNote, match=r"goes to 0: it stops at 0\.0001"):
        assert by_evidence("x", sf.scan({"x": ["a"] * 20}, variables={"x": ["a", "b"]}), BDeu()).ess == 1e-4
    with pytest.warns(SufficeNote, match="stops at 50"):
        assert by_evidence("x", {"x": ["a", "b"] * 20}, EmpiricalBayes(Dirichlet(), highest=50.0)).alpha == 50.0


def test_of_several_maxima_the_highest_is_found():
    def hills(x):
        return np.exp(-((x + 7.0) ** 2)) + 2.0 * np.exp(-(((x - 6.0) / 0.7) ** 2))

    assert highest_point(hills, -10.0, 20.0) == pytest.approx(6.0, abs=1e-6)
    assert highest_point(lambda x: -np.exp(-x), -10.0, 20.0) == 20.0
    assert highest_point(lambda x: 0.0, -10.0, 20.0) == 20.0


def test_what_has_no_number_to_choose_is_refused():
    for wrong, why in ((K2(), "Dirichlet"), (BDs(), "not one of them"), (HierarchicalDirichlet(), "chooses by itself")):
        with pytest.raises(FitError, match=why):
            EmpiricalBayes(wrong)
    with pytest.raises(FitError, match="each has its own"):
        EmpiricalBayes((BDeu(), Gamma()))
    with pytest.raises(FitError, match="lowest < highest"):
        EmpiricalBayes(BDeu(), lowest=2.0, highest=1.0)
    for wrong in ("a", None, True, 0.0, np.nan, np.inf):
        with pytest.raises(FitError, match="lowest < highest"):
            EmpiricalBayes(BDeu(), lowest=wrong)
    with pytest.raises(FitError, match="by_evidence needs the prior"):
        by_evidence("x", {"x": ["a"]}, None)


def test_scores_of_wide_tables_list_only_rows_with_data():
    wide = [sf.Finite(f"p{i}", [str(k) for k in range(60)]) for i in range(6)]
    y = sf.Finite("y", ["a", "b"])
    seen = Counts((*wide, y), [3.0, 1.0, 4.0], [2, 3, 60**6])
    found = pool_rows([[3, 1], [4, 0]])
    prior = HierarchicalDirichlet().choose({"y": y}, [(y, wide, seen)], None)
    said = prior.imagine(y, wide, seen)
    assert len(said.keys) == 4
    assert TableNode().log_evidence(y, seen, said) == pytest.approx(found.log_evidence)


@pytest.fixture(scope="module")
def twins():
    rng = np.random.default_rng(0)
    u = rng.integers(0, 3, 60)
    return {"u": u.astype(str), **{n: (rng.random(60) < (u + 0.5) / 4).astype(str) for n in "ab"}}


@pytest.mark.parametrize("prior", [BDeu(), HierarchicalDirichlet(), sf.priors.LogisticNormal(variance=None)])
def test_by_evidence_chooses_what_fit_does_with_ties(twins, prior):
    dag, ties = "u -> a; u -> b", [("a", "b")]
    choosing = EmpiricalBayes(prior) if isinstance(prior, BDeu) else prior
    tied = sf.fit(dag, twins, shared=ties)
    plate = sf.plates.Plate("u -> x", columns={"x": ["a", "b"]})
    for graph, shared in ((dag, ties), (plate, None), (tied, None), (tied, ()), (dag, None)):
        found = by_evidence(graph, twins, prior, shared=shared)
        bn = sf.fit(graph, twins, prior=choosing, shared=shared)
        chosen = bn.prior.prior if bn.shared else bn.prior
        assert found == chosen
        assert sf.fit(graph, twins, prior=found, shared=shared) == bn
        assert found == by_evidence(graph, bn.statistics, prior, shared=shared)
    assert by_evidence(dag, twins, prior) != by_evidence(dag, twins, prior, shared=ties)


def test_by_evidence_takes_the_states_of_a_network_and_leaves_out_what_has_no_evidence(twins):
    wide = sf.fit("u -> a", sf.scan(twins, variables={"a": ["False", "True", "?"]}))
    assert by_evidence(wide, twins, BDeu()) == sf.fit(wide, twins, prior=EmpiricalBayes(BDeu())).prior
    assert by_evidence(wide, twins, BDeu()) != by_evidence("u -> a", twins, BDeu())
    partial = sf.plates.Plate("a -> b", group="u", inside=["b"], pooling=sf.plates.Partial())
    rows = {**twins, "u": np.sort(twins["u"])}
    assert by_evidence(partial, rows, Dirichlet()) == sf.fit(partial, rows, prior=EmpiricalBayes(Dirichlet())).prior.prior
    rows["r"] = np.random.default_rng(1).normal(size=60)
    bn = sf.fit("u -> a; r -> b", rows, prior=(EmpiricalBayes(BDeu()), NormalInverseGamma()), families={"b": sf.Logistic()})
    found = by_evidence("u -> a; r -> b", rows, (BDeu(), NormalInverseGamma()), families={"b": sf.Logistic()})
    assert found.priors[0] == bn.prior.priors[0]
    assert by_evidence(bn, rows, (BDeu(), NormalInverseGamma())) == found
    with pytest.raises(sf.SufficeError, match="do not speak of 'c'"):
        by_evidence("u -> c", sf.gather(twins, "u -> a"), BDeu())
    with pytest.raises(FitError, match="'c', which is not in the graph"):
        by_evidence("u -> a", twins, BDeu(), shared=[("a", "c")])


def test_tied_numbers_have_the_defaults_of_what_they_saw_together():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, 60)
    rows = {"x": x.astype(str), "a": rng.normal(x, 1.0), "b": rng.normal(x + 0.5, 2.0)}
    prior, dag, ties = NormalInverseGamma(), "x -> a; x -> b", [("a", "b")]
    best = by_evidence(dag, rows, prior, shared=ties).count

    def evidence(count):
        return sf.score(dag, rows, sf.Evidence((BDeu(), NormalInverseGamma(count=count))), shared=ties)

    assert 1e-3 < best < 1e3
    assert evidence(best) >= max(evidence(best * h) for h in (0.5, 0.97, 1.03, 2.0))


def test_rows_that_weigh_next_to_nothing_choose_nothing():
    rows = sf.scan({"x": ["a", "b", "b"], "w": [1e-12, 2e-12, 1e-11]}, weights="w")
    with pytest.raises(FitError, match=r"weigh 1\.3e-11 together, too little to choose ess by: give it, as in BDeu\(ess=1\)"):
        sf.fit("x", rows, prior=EmpiricalBayes(BDeu()))
