"""Plates: what they expand to, and how far copies and groups are pooled."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FitError, SufficeNote
from suffice.families.categorical import TableNode
from suffice.families.hierarchical.hierarchical import common
from suffice.families.priors.empirical_bayes import pool_rows
from suffice.learning.complete.plates import Partial, Plate, Pooled, Separate
from suffice.statistics import Counts

QUESTIONS = ["q1", "q2", "q3"]
ANSWERS = Plate("skill -> answer", columns={"answer": QUESTIONS})


def answers(n: int = 200, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    skill = rng.choice(["low", "high"], n)
    right = np.where(skill == "high", 0.8, 0.3)
    return {"skill": skill, **{q: np.where(rng.random(n) < right, "right", "wrong") for q in QUESTIONS}}


def hospitals(seed: int = 1) -> dict[str, Any]:
    """Six hospitals, of 120 to 4 patients, with success rates of their own."""
    rng = np.random.default_rng(seed)
    hospital = np.repeat(list("abcdef"), [120, 60, 40, 20, 10, 4])
    rates = dict(zip("abcdef", [0.5, 0.65, 0.35, 0.7, 0.45, 0.9], strict=True))
    treatment = rng.choice(["new", "old"], len(hospital))
    good = rng.random(len(hospital)) < np.array([rates[h] for h in hospital]) - 0.1 * (treatment == "old")
    return {"hospital": hospital, "treatment": treatment, "outcome": np.where(good, "good", "poor")}


def test_columns_expand_to_tied_copies() -> None:
    assert ANSWERS.dag == sf.Dag("skill -> q1; skill -> q2; skill -> q3")
    assert ANSWERS.shared == (("q1", "q2", "q3"),)
    bn = sf.fit(ANSWERS, answers(), prior=sf.BDeu(1))
    assert bn == sf.fit(ANSWERS.dag, answers(), prior=sf.BDeu(1), shared=ANSWERS.shared)
    assert bn.n_parameters == 3
    assert sf.score(ANSWERS, answers()) == pytest.approx(sf.fit(ANSWERS, answers()).bic(), rel=1e-13)


def test_repeated_nodes_go_in_step() -> None:
    plate = Plate("z -> x; x -> y; y -> total; z", columns={"x": ["x1", "x2"], "y": ["y1", "y2"]})
    assert plate.dag == sf.Dag("z -> x1; z -> x2; x1 -> y1; x2 -> y2; y1 -> total; y2 -> total")
    assert plate.dag.parents("total") == ("y1", "y2")
    assert plate.shared == (("x1", "x2"), ("y1", "y2"))
    assert plate.expand({"x": ["a", "b", "c"], "y": ["d", "e", "f"]}).shared == (("a", "b", "c"), ("d", "e", "f"))


def test_copies_of_a_mixture_are_the_stacked_rows() -> None:
    """A plate over hidden variables: two places in each row are two rows of one."""
    rng = np.random.default_rng(0)
    h = rng.integers(2, size=(2, 80))
    rows = {f"{c}{i + 1}": np.where(rng.random(80) < 0.15 + 0.7 * h[i], "u", "v") for i in (0, 1) for c in "abc"}
    plate = Plate("h -> a; h -> b; h -> c", columns={n: [f"{n}1", f"{n}2"] for n in "habc"})
    hidden = [sf.Finite(n, ["0", "1"]) for n in ("h1", "h2")]
    run = sf.em(plate, rows, hidden=hidden, starts=3, tol=1e-10, max_iter=2000)
    long = {c: np.concatenate([rows[f"{c}1"], rows[f"{c}2"]]) for c in "abc"}
    one = sf.em("h -> a; h -> b; h -> c", long, hidden=[sf.Finite("h", ["0", "1"])], starts=3, tol=1e-10, max_iter=2000)
    assert run.trace[-1].log_likelihood == pytest.approx(one.trace[-1].log_likelihood, abs=1e-5)
    assert run.model.shared == plate.shared


def test_groups() -> None:
    plate = Plate("treatment -> outcome", group="hospital")
    assert plate.dag == sf.Dag("hospital -> treatment; hospital -> outcome; treatment -> outcome")
    assert plate.dag.parents("outcome") == ("treatment", "hospital")
    assert sf.fit(plate, hospitals()) == sf.fit(plate.dag, hospitals())
    inside = Plate("treatment -> outcome", group="hospital", inside="outcome")
    assert inside.dag == sf.Dag("hospital -> outcome; treatment -> outcome")
    tied = Plate("treatment -> outcome", group="hospital", pooling=Pooled())
    assert tied.dag == sf.Dag("treatment -> outcome; hospital")
    np.testing.assert_array_equal(
        sf.fit(tied, hospitals())["outcome"].probs, sf.fit("treatment -> outcome", hospitals())["outcome"].probs
    )


def test_columns_within_groups() -> None:
    plate = Plate("skill -> answer", columns={"answer": QUESTIONS}, group="school", inside=["answer"])
    assert plate.dag.parents("q2") == ("skill", "school")
    assert plate.shared == (tuple(QUESTIONS),)
    rows = {**answers(), "school": np.resize(["s", "t", "u"], 200)}
    for pooling in (Separate(), Partial()):
        several = Plate("skill -> answer", columns={"answer": QUESTIONS}, group="school", inside=["answer"], pooling=pooling)
        bn = sf.fit(several, rows, prior=sf.BDeu(1))
        long = {n: np.tile(rows[n], 3) for n in ("skill", "school")} | {"answer": np.concatenate([rows[q] for q in QUESTIONS])}
        one = sf.fit(Plate("skill -> answer", group="school", inside=["answer"], pooling=pooling), long, prior=sf.BDeu(1))
        for q in QUESTIONS:
            np.testing.assert_allclose(bn[q].probs, one["answer"].probs, rtol=1e-9)


@pytest.mark.parametrize("inside", [["outcome"], None])
def test_partial_pooling_lies_between(inside: Any) -> None:
    rows = hospitals()
    bns = [
        sf.fit(Plate("treatment -> outcome", group="hospital", inside=inside, pooling=p), rows, prior=sf.BDeu(1))
        for p in (Pooled(), Separate(), Partial())
    ]
    tied, partial = bns[0]["outcome"].probs[..., 0], bns[2]["outcome"].probs[..., 0]
    counts = bns[1]["outcome"].seen.dense()
    N = counts.sum(axis=-1)
    separate = counts[..., 0] / np.maximum(N, 1.0)
    strength = bns[2].prior.found["outcome"].strength
    mean = bns[2].prior.found["outcome"].mean[:, 0]
    share = strength / (strength + N)
    np.testing.assert_allclose(partial, share * mean[:, None] + (1 - share) * separate, rtol=1e-12)
    low, high = np.minimum(mean[:, None], separate), np.maximum(mean[:, None], separate)
    assert np.all((partial >= low - 1e-12) & (partial <= high + 1e-12))
    assert np.abs(mean - tied).max() < 0.1
    lower, upper = bns[2]["outcome"].interval()
    assert np.all((lower < partial[..., None].repeat(2, -1) * 0 + bns[2]["outcome"].probs) & (bns[2]["outcome"].probs < upper))


def test_strength_is_that_of_the_highest_evidence() -> None:
    """One strength for all configurations: no other has a higher evidence with one imagined row in each mean, at its best."""
    rng = np.random.default_rng(4)
    counts = np.array(
        [
            [rng.multinomial(n, rng.dirichlet(6.0 * np.array(m))) for n in (50, 30, 20, 9)]
            for m in ([0.5, 0.3, 0.2], [0.1, 0.1, 0.8])
        ]
    )
    strength, mean = common(counts.astype(float))

    def evidence(s: float) -> float:
        return float(sum((found := pool_rows(rows, s)).log_evidence + np.log(found.mean).sum() / 3 for rows in counts))

    assert all(evidence(strength) >= evidence(s) - 1e-9 for s in strength * np.array([0.3, 0.8, 0.99, 1.01, 1.3, 3.0]))
    for rows, m in zip(counts, mean, strict=True):
        np.testing.assert_allclose(m, pool_rows(rows, strength).mean)


def test_configurations_without_rows_do_not_matter() -> None:
    rows = {"g": list("100001001101"), "y": list("aaaabaabaaba"), "t": ["t0"] * 12}
    known = {"y": ["a", "b", "c"], "t": ["t0", "t1"]}
    alone = sf.fit(Plate("y", group="g", pooling=Partial()), sf.scan(rows, variables=known), prior=sf.BDeu())
    other = sf.fit(Plate("t -> y", group="g", inside=["y"], pooling=Partial()), sf.scan(rows, variables=known), prior=sf.BDeu())
    found = [bn.prior.found["y"] for bn in (alone, other)]
    assert found[0].strength == found[1].strength == pytest.approx(3.14, abs=0.005)
    np.testing.assert_array_equal(found[1].mean[0], found[0].mean)
    counts = np.array([[8.0, 2, 0], [3, 7, 0], [6, 4, 0]])
    more = np.array([counts, np.zeros((3, 3)), [[5.0, 1, 1], [0, 0, 0], [0, 0, 0]]])
    assert common(more)[0] == pool_rows(counts).strength
    assert common(np.array([counts, counts]))[0] == pytest.approx(pool_rows(counts).strength, rel=1e-9)


def test_evidence_of_a_pooled_plate() -> None:
    rows = hospitals()
    plate = Plate("treatment -> outcome", group="hospital", inside=["outcome"], pooling=Partial(strength=8.0))
    bn = sf.fit(plate, rows, prior=sf.BDeu(1))
    outcome = bn["outcome"]
    expected = TableNode().log_evidence(outcome.child, outcome.seen, outcome.imagined)
    score = sf.score(plate, rows, sf.Evidence(sf.BDeu(1)), by_node=True)
    assert score["outcome"] == pytest.approx(expected, rel=1e-13)
    assert isinstance(outcome.imagined, Counts)
    np.testing.assert_allclose(outcome.imagined.dense().sum(axis=-1), 8.0)
    chosen = Plate("treatment -> outcome", group="hospital", inside=["outcome"], pooling=Partial())
    assert sf.score(chosen, rows, sf.Evidence(sf.BDeu(1))) >= sf.score(plate, rows, sf.Evidence(sf.BDeu(1)))


def test_partial_pooling_over_columns() -> None:
    rows = answers()
    rows["q3"][:5] = "-"  # copies are of one shape: the others take on this state, and that is said
    plates = [Plate("skill -> answer", columns={"answer": QUESTIONS}, pooling=p) for p in (Separate(), Partial())]
    with pytest.warns(SufficeNote, match="'q1' takes on '-', 'q2' takes on '-', which 'q3' has") as said:
        bns = [sf.fit(plate, rows, prior=sf.K2()) for plate in plates]
    assert sum("takes on" in str(w.message) for w in said) == 1
    assert bns[1].shared == ()
    assert bns[1].variables["q1"].states == ("-", "right", "wrong")
    assert bns[0].variables["q1"].states == ("right", "wrong")
    rows["q1"] = np.where(rows["q1"] == "right", "Right", "wrong")
    with pytest.raises(FitError, match="'q1' has 'Right', which 'q3' has not, and 'q3' has '-', 'right'"):
        sf.fit(plates[1], rows, prior=sf.K2())
    found = bns[1].prior.found["q2"]
    seen = bns[1]["q2"].seen.dense()
    np.testing.assert_allclose(
        bns[1]["q2"].probs, (seen + found.strength * found.mean) / (seen.sum(-1, keepdims=True) + found.strength), rtol=1e-13
    )


def test_a_new_group_has_the_common_mean_and_updates_add() -> None:
    plate = Plate("treatment -> outcome", group="hospital", inside=["outcome"], pooling=Partial())
    bn = sf.fit(plate, hospitals(), prior=sf.BDeu(1))
    more = {"hospital": ["g"], "treatment": ["new"], "outcome": ["good"]}
    new = bn.update(more)
    assert new.prior == bn.prior
    strength, mean = (getattr(bn.prior.found["outcome"], part) for part in ("strength", "mean"))
    np.testing.assert_allclose(new["outcome"].probs[1, 6], mean[1], rtol=1e-12)
    np.testing.assert_allclose(new["outcome"].probs[0, 6, 0], (strength * mean[0, 0] + 1) / (strength + 1), rtol=1e-12)
    with pytest.raises(FitError, match="states that were not known when the common mean"):
        bn.update({"hospital": ["a"], "treatment": ["new"], "outcome": ["unknown"]})


def test_files_pickles_queries_samples(tmp_path: Any) -> None:
    plate = Plate("skill -> answer", columns={"answer": QUESTIONS}, group="school", inside=["answer"], pooling=Partial())
    rows = {**answers(), "school": np.resize(["s", "t", "u", "u"], 200)}
    bn = sf.fit(plate, rows, prior=sf.BDeu(1))
    sf.write(bn, tmp_path / "plate.json")
    for other in (sf.read(tmp_path / "plate.json"), pickle.loads(pickle.dumps(bn))):
        assert other == bn
        assert other.update(rows) == bn.update(rows)
        assert other.query("q1", given={"school": "s"}, interval=0.9).interval.lower[0] > 0
    assert bn.sample(5, seed=0).num_rows == 5
    assert pickle.loads(pickle.dumps(plate)) == plate


def test_repr() -> None:
    said = repr(Plate("treatment -> outcome", group="hospital", inside=["outcome"], pooling=Partial()))
    assert (
        said
        == "Plate('treatment -> outcome', group='hospital', inside=['outcome'], pooling=Partial(strength=None)): 3 nodes, 2 edges"
    )
    assert repr(ANSWERS).endswith("pooling=Pooled()): 4 nodes, 3 edges; q1, q2, q3 share their parameters")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "repeats its nodes over columns"),
        ({"columns": {"answr": ["q1"]}}, "'answr', which is not in its graph; did you mean 'answer'"),
        ({"columns": {"answer": "q1"}}, "are a list"),
        ({"columns": ["q1"]}, "lists by node"),
        ({"columns": {"answer": []}}, "over no columns"),
        ({"columns": {"answer": ["q1", "q1"]}}, "'q1' is in two places"),
        ({"columns": {"answer": ["q1", "skill"]}}, "'skill' is in two places"),
        ({"columns": {"answer": ["q1", 2]}}, "2 is not the name of a column"),
        ({"columns": {"answer": ["q1", "q2"], "skill": ["s1"]}}, "as many columns, but there are 'answer' 2, 'skill' 1"),
        ({"group": "skill"}, "also a node of the plate"),
        ({"group": 3}, "name of a column"),
        ({"group": "school", "inside": ["answers"]}, "'answers', which is not in the graph; did you mean 'answer'"),
        ({"group": "school", "inside": []}, "names no node"),
        ({"columns": {"answer": ["q1"]}, "inside": ["answer"]}, "give the column, group="),
        ({"group": "school", "pooling": "tied"}, r"pooling is Pooled\(\), Separate\(\) or Partial\(\)"),
        ({"group": "school", "pooling": Pooled}, r"pooling is Pooled\(\)"),
    ],
)
def test_refusals(options: dict[str, Any], said: str) -> None:
    with pytest.raises(FitError, match=said):
        Plate("skill -> answer", **options)


@pytest.mark.parametrize("strength", [0, -1.0, float("nan"), float("inf"), "3", True])
def test_strengths_are_positive_numbers(strength: Any) -> None:
    with pytest.raises(FitError, match="strength of Partial"):
        Partial(strength)


def test_partial_pooling_needs_tables_of_complete_rows() -> None:
    plate = Plate("treatment -> outcome", group="hospital", inside=["outcome"], pooling=Partial())
    rows = {k: list(v) for k, v in hospitals().items()}
    copies = Plate("skill -> answer", columns={"answer": QUESTIONS}, pooling=Partial())
    with pytest.raises(FitError, match=r"'q1' is a number: use Separate\(\) or Pooled\(\)"):
        sf.fit(copies, {"skill": list("ab") * 20} | {q: np.arange(40) + 0.5 for q in QUESTIONS})
    rows["outcome"][0] = None
    with pytest.raises(FitError, match=r"Partial\(\) learns from complete rows"):
        sf.fit(plate, rows)
    with pytest.warns(SufficeNote, match="there are missing cells"):
        sf.fit(Plate("treatment -> outcome", group="hospital", inside=["outcome"]), rows, prior=sf.BDeu(1))


def test_groups_that_never_meet() -> None:
    """Each group has one treatment only: nothing is known of how groups differ, and the strength is 1 around an even mean."""
    rows = {"hospital": ["a", "a", "b", "b"], "treatment": ["new", "new", "old", "old"], "outcome": ["y", "n", "y", "y"]}
    bn = sf.fit(Plate("treatment -> outcome", group="hospital", inside=["outcome"], pooling=Partial()), rows, prior=sf.K2())
    assert bn.prior.found["outcome"].strength == 1.0
    np.testing.assert_allclose(bn["outcome"].probs[0, 0], [0.5, 0.5])


def test_a_plate_beside_a_regression() -> None:
    rng = np.random.default_rng(0)
    rows = {**hospitals(), "age": rng.normal(size=254)}
    rows["visit"] = np.where(rows["age"] + rng.normal(size=254) > 0, "yes", "no")
    plate = Plate("treatment -> outcome; age -> visit", group="hospital", inside=["outcome"], pooling=Partial())
    bn = sf.fit(plate, rows, prior=(sf.BDeu(1), sf.NormalInverseGamma()), families={"visit": sf.Logistic()})
    alone = sf.fit(Plate("treatment -> outcome", group="hospital", inside=["outcome"], pooling=Partial()), rows, prior=sf.BDeu(1))
    np.testing.assert_allclose(bn["outcome"].probs, alone["outcome"].probs, rtol=1e-12)


def test_statistics_of_another_graph_are_refused_by_name() -> None:
    seen = sf.gather({"skill": ["a", "b"], "q1": ["x", "y"]}, "skill -> q1")
    with pytest.raises(sf.SufficeError, match="do not speak of 'q2', 'q3'"):
        sf.fit(Plate("skill -> answer", columns={"answer": QUESTIONS}, pooling=Partial()), seen)
