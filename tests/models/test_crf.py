"""Linear chains of labels: features from frames, answers, files, and what is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import suffice as sf
from suffice.basis.iteration import Progress
from tests.crf_oracles import enumerated, scores_of

TEXT = "the/D cat/N sat/V on/P the/D mat/N ;/; a/D dog/N ran/V to/P the/D Dog-House/N ;/; Mary/N saw/V 2/D cats/N"
WORDS, TAGS = zip(*(token.split("/") for token in TEXT.split()), strict=True)
SENTENCE = np.cumsum([w == ";" for w in WORDS])
KEPT = [i for i, w in enumerate(WORDS) if w != ";"]
ROWS: dict[str, Any] = {"s": SENTENCE[KEPT].tolist(), "word": [WORDS[i] for i in KEPT], "tag": [TAGS[i] for i in KEPT]}
SHAPED = sf.LinearChain(
    "tag", [sf.Window(["word", sf.labels.Suffix("word", 2), sf.labels.Shape("word")]), sf.Window(["word"], at=(-1, 1))]
)


def rows(table: Any = None, **how: Any) -> sf.chains.Sequences:
    return sf.sequences(ROWS if table is None else table, by="s", **how)


def fitted(chain: sf.LinearChain = SHAPED, table: Any = None, **how: Any) -> sf.Crf:
    return sf.fit(chain, rows(table), **{"penalty": sf.L2(0.1), **how})


def test_derived_columns() -> None:
    assert sf.labels.Suffix("w", 3).of("walking") == "ing"
    assert sf.labels.Suffix("w", 3).of("a") == "a"
    assert sf.labels.Prefix("w", 2).of("undo") == "un"
    assert sf.labels.Lower("w").of("ÀB") == "àb"
    assert [sf.labels.Shape("w").of(x) for x in ("McDonald", "1999-12", "...", "Ünï")] == ["XxXx", "d-d", ".", "Xx"]
    for wrong in (
        lambda: sf.labels.Suffix("w", 0),
        lambda: sf.Window([]),
        lambda: sf.Window([3]),
        lambda: sf.Window(["w"], at=(0.5,)),
    ):
        with pytest.raises(sf.SufficeError):
            wrong()


def test_attributes_have_names_and_ends_are_marked() -> None:
    crf = fitted()
    assert crf.attributes[0] == "bias"
    for name in ("word=cat", "suffix2(word)=at", "shape(word)=X-X".replace("X-X", "Xx-Xx"), "word[-1]=<s>", "word[+1]=</s>"):
        assert name in crf.attributes
    assert "word[-1]=</s>" not in crf.attributes
    assert list(crf.predict(rows())) == ROWS["tag"]
    assert crf.labels == ("D", "N", "P", "V")


def test_pairs_have_weights_as_in_crfsuite() -> None:
    """Pairs that occur, and of these no fewer than min_count; or all."""
    chain = sf.LinearChain("tag", [sf.Window(["word"])])
    pairs = {(w, t) for w, t in zip(ROWS["word"], ROWS["tag"], strict=True)}
    both = {(a, b) for s, t, a, b in zip(ROWS["s"], ROWS["s"][1:], ROWS["tag"], ROWS["tag"][1:], strict=False) if s == t}
    assert fitted(chain).n_weights == len(pairs) + len(both) + 4
    often = fitted(sf.LinearChain("tag", [sf.Window(["word"])], min_count=2))
    assert set(often.weights["attribute"]) >= {"word=the", "bias"}
    assert "word=cat" not in often.attributes
    every = fitted(sf.LinearChain("tag", [sf.Window(["word"])], unseen=True))
    assert every.n_weights == 4 * (len(set(ROWS["word"])) + 1) + 16


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_frames_come_back_as_their_kind(kind: Any) -> None:
    crf, s = fitted(), rows(kind(ROWS))
    assert list(map(str, crf.predict(s))) == ROWS["tag"]
    probs = crf.predict_proba(s)
    assert type(probs) is (dict if kind is dict else type(kind(ROWS)))
    np.testing.assert_allclose(sum(np.asarray(probs[label]) for label in crf.labels), 1.0)


def test_rows_in_another_order_are_answered_in_it() -> None:
    turn = np.random.default_rng(0).permutation(len(KEPT))
    order = {"at": list(range(len(KEPT))), **ROWS}
    mixed = {n: [c[i] for i in turn] for n, c in order.items()}
    s = sf.sequences(mixed, by="s", order="at")
    assert list(fitted().predict(s)) == [ROWS["tag"][i] for i in turn]


def test_lists_of_texts_are_attributes() -> None:
    lists = {**ROWS, "f": [["w=" + w, "e=" + w[-2:]] for w in ROWS["word"]]}
    one = fitted(sf.LinearChain("tag", [sf.Window(["f"])]), lists)
    other = fitted(sf.LinearChain("tag", [sf.Window(["word", sf.labels.Suffix("word", 2)])]))
    assert one.n_weights == other.n_weights
    assert one.run is not None
    assert other.run is not None
    assert one.run.objective == pytest.approx(other.run.objective, abs=1e-6)


def test_numbers_multiply_their_weight() -> None:
    table = {**ROWS, "n": [0.1 * i + 0.05 for i in range(len(KEPT))]}
    crf = fitted(sf.LinearChain("tag", [sf.Window(["n"], at=(0, -1))]), table)
    assert crf.attributes == ("bias", "n", "n[-1]")
    doubled = {**table, "n": [2 * x for x in table["n"]]}
    small, large = (
        sf.fit(crf.linear_chain, rows(t), penalty=sf.L2(1e-8), max_iter=60).log_likelihood(rows(t)) for t in (table, doubled)
    )
    assert small == pytest.approx(large, abs=0.05)


def test_a_function_of_ones_own_is_a_column_later(tmp_path: Path) -> None:
    chain = sf.LinearChain("tag", [sf.Window([sf.labels.Derived("length", "word", lambda w: str(len(w)))])])
    crf = fitted(chain)
    assert "length=3" in crf.attributes
    for again in (pickle.loads(pickle.dumps(crf)), reread(crf, tmp_path / "m.json")):
        assert again != crf  # it reads another column
        with pytest.raises(sf.SufficeError, match="no column 'length'"):
            again.predict(rows())
        supplied = {**ROWS, "length": [str(len(w)) for w in ROWS["word"]]}
        np.testing.assert_allclose(again.log_prob(rows(supplied)), crf.log_prob(rows()))


def reread(crf: sf.Crf, path: Path) -> sf.Crf:
    sf.write(crf, path)
    result: sf.Crf = sf.read(path)
    return result


def test_models_compare_by_what_they_are(tmp_path: Path) -> None:
    crf = fitted()
    assert crf == fitted()
    assert reread(crf, tmp_path / "m.json") == crf
    more = crf.weight_vector.copy()
    more[0] += 1.0
    assert crf != sf.Crf(crf.vocabulary, crf.features, more)
    assert crf != fitted(table={**ROWS, "tag": [t.lower() for t in ROWS["tag"]]})
    assert crf != fitted(sf.LinearChain("tag", [sf.Window(["word"])]))
    all_pairs, some = (fitted(replace(SHAPED, unseen=True)).features, crf.features)
    assert all_pairs.n_labels == some.n_labels
    assert sf.Crf(crf.vocabulary, all_pairs, np.zeros(all_pairs.n)) != sf.Crf(crf.vocabulary, some, np.zeros(some.n))
    assert crf != crf.linear_chain
    with pytest.raises(TypeError, match="unhashable"):
        hash(crf)


def test_files_keep_everything_and_are_the_same_each_time(tmp_path: Path) -> None:
    crf = fitted()
    for name in ("m.json", "m.json.gz"):
        again = reread(crf, tmp_path / name)
        assert np.array_equal(again.weight_vector, crf.weight_vector)
        assert (again.attributes, again.labels, again.linear_chain) == (crf.attributes, crf.labels, crf.linear_chain)
        assert again.fit_info == crf.fit_info
        data = (tmp_path / name).read_bytes()
        sf.write(again, tmp_path / name)
        assert (tmp_path / name).read_bytes() == data
    with pytest.raises(sf.SufficeError, match=r"write \.json"):
        sf.write(crf, tmp_path / "m.bif")  # type: ignore[arg-type]
    broken = (tmp_path / "m.json").read_text().replace('"of": [', '"of": [99, ')
    (tmp_path / "m.json").write_text(broken)
    with pytest.raises(sf.SufficeError):
        sf.read(tmp_path / "m.json")


def test_weights_can_be_read_and_not_written() -> None:
    crf = fitted()
    table = crf.weights
    assert list(table.columns) == ["attribute", "label", "weight"]
    assert (np.diff(np.abs(table["weight"])) <= 0).all()
    assert {"tag[-1]=D"} <= set(table["attribute"])
    with pytest.raises(ValueError):
        crf.weight_vector[0] = 1.0
    assert "Crf of 'tag'" in repr(crf)
    assert "conditional likelihood" in crf.fit_info


def test_an_explanation_adds_up() -> None:
    crf = fitted()
    why = crf.explain(rows(), 1)
    assert why.label == "N"
    assert {"word=cat", "word[-1]=the", "tag[-1]=D", "tag[+1]=V"} <= {what for what, _, _ in why.contributions}
    assert "row 1 is N" in repr(why)
    with pytest.raises(sf.SufficeError, match="no row 99"):
        crf.explain(rows(), 99)


def test_evaluation_of_labels_and_of_entities() -> None:
    bio = {"s": [1] * 6, "w": list("abcdef"), "y": ["B-P", "I-P", "O", "B-L", "O", "B-P"]}
    crf = sf.fit(sf.LinearChain("y", [sf.Window(["w"])]), sf.sequences(bio, by="s"), penalty=sf.L2(0.01))
    found = crf.evaluate(sf.sequences({**bio, "y": ["B-P", "I-P", "O", "B-P", "O", "O"]}, by="s"))
    assert (found.n_right, found.n) == (4, 6)
    assert found.kinds == ("L", "P")
    assert found.entities.tolist() == [[0, 1], [1, 2], [0, 2]]
    assert found.entity_f1 == pytest.approx(2 / 5)
    assert "F1 of entities" in repr(found)
    assert len(found.to_frame()) == 6


def test_a_warm_start_needs_no_iterations_and_limits_are_kept() -> None:
    crf = fitted()
    assert fitted(start=crf).run.n_iterations <= 1  # type: ignore[union-attr]
    with pytest.warns(sf.SufficeNote, match="did not converge in 2 iterations"):
        short = fitted(max_iter=2)
    assert short.run is not None
    assert not short.run.converged
    with pytest.warns(sf.SufficeNote, match="stopped before its end"):
        assert not fitted(time_limit=1e-9).run.converged  # type: ignore[union-attr]


def test_ctrl_c_keeps_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.learning.crf.problem import LabelProblem

    calls, loss = [], LabelProblem.loss

    def interrupted(problem: LabelProblem, w: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return loss(problem, w)

    monkeypatch.setattr(LabelProblem, "loss", interrupted)
    with pytest.warns(sf.SufficeNote, match="stopped before its end"):
        crf = fitted()
    assert crf.run is not None
    assert 1 <= len(crf.run.trace) <= 3
    assert crf.run.objective < crf.run.trace[0].objective


def test_missing_labels_are_summed_over_and_said() -> None:
    some = {**ROWS, "tag": [None if i in (2, 9) else t for i, t in enumerate(ROWS["tag"])]}
    with pytest.warns(sf.SufficeNote, match="2 steps of 2 sequences without 'tag'"):
        crf = fitted(table=some)
    assert crf.log_prob(rows(some)).shape == (3,)
    whole, partly = crf.log_prob(rows()), crf.log_prob(rows(some))
    assert (partly >= whole - 1e-12).all()


def test_a_label_of_other_data_is_named() -> None:
    other = {**ROWS, "tag": ["Q", *ROWS["tag"][1:]]}
    crf = fitted()
    with pytest.warns(sf.SufficeNote, match="does not know the label 'Q'"):
        assert crf.evaluate(rows(other)).n_unknown == 1
    with pytest.warns(sf.SufficeNote, match="does not know the label 'Q'"):
        assert crf.log_prob(rows(other))[0] == -np.inf


def test_what_training_never_saw_is_counted() -> None:
    with pytest.warns(sf.SufficeNote, match=r"never saw, or too seldom, are ignored: word 1, "):
        fitted().predict(rows({**ROWS, "word": ["zzz", *ROWS["word"][1:]]}))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (lambda: sf.LinearChain("tag", [sf.Window(["word", "tag"])]), "also a feature"),
        (lambda: sf.LinearChain("tag", [sf.Window([sf.labels.Lower("tag")])]), "also a feature"),
        (lambda: sf.LinearChain("tag", ["word"]), "are windows"),
        (lambda: fitted(penalty=sf.L2(-1)), "above 0"),
        (lambda: fitted(penalty=sf.L1({"a": 1.0})), "one number"),
        (lambda: sf.fit(SHAPED, ROWS), "reads sequences, not dict"),
        (lambda: fitted(sf.LinearChain("tg", [sf.Window(["word"])])), "no column 'tg'.*did you mean 'tag'"),
        (lambda: fitted(sf.LinearChain("tag", [sf.Window(["wrd"])])), "no column 'wrd'.*did you mean 'word'"),
        (lambda: fitted(table={**ROWS, "tag": [None] * len(KEPT)}), "every cell of the label 'tag' is missing"),
        (lambda: fitted(sf.LinearChain("tag", [sf.Window(["word"])], min_count=99)), "occurs 99 times"),
        (lambda: fitted(objective=sf.Conditional("word")), "the label of the chain is 'tag'"),
        (lambda: fitted(objective=sf.Likelihood()), "the nearest is Conditional"),
        (lambda: fitted(objective=sf.Conditional), "an objective is a value"),
        (lambda: fitted(prior=sf.BDeu(1)), "prior="),
        (lambda: sf.fit("word -> tag", ROWS, max_iter=3), "max_iter= is for a LinearChain"),
        (lambda: sf.sequences({**ROWS, "s": [0, 1, *ROWS["s"][2:]]}, by="s"), "must be adjacent"),
        (lambda: fitted().predict({"word": ["a"]}), "reads sequences, not dict"),
        (lambda: fitted().predict(sf.sequences({"wrd": ["a"]})), "no column 'word'"),
        (lambda: fitted(start="no"), "start of a linear chain is a Crf"),
        (lambda: fitted(tol=-1), "tol is a share"),
    ],
)
def test_what_cannot_be_is_refused_by_name(what: Any, message: str) -> None:
    with pytest.raises(sf.SufficeError, match=message):
        what()


def noisy(n: int = 60, seed: int = 0) -> dict[str, Any]:
    """Labels that words tell mostly."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 6, n)
    y = np.where(rng.random(n) < 0.8, x // 2, rng.integers(0, 3, n))
    return {"s": (np.arange(n) // 5).tolist(), "x": [f"x{i}" for i in x], "y": [f"y{i}" for i in y]}


NOISY = sf.LinearChain("y", [sf.Window(["x"], at=(-1, 0))])


@pytest.mark.parametrize(
    ("objective", "penalty"),
    [(None, sf.L2(1)), (None, sf.L1(0.1)), (sf.Margin("y"), sf.L2(1)), (sf.objectives.Perceptron("y"), None)],
)
def test_the_same_fit_is_the_same_file_however_long_it_took(
    objective: Any, penalty: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for seconds in (0.25, 0.75):
        monkeypatch.setattr(Progress, "seconds", seconds)
        crf = sf.fit(NOISY, rows(noisy()), objective=objective, penalty=penalty)
        assert f", {seconds:.2f} s: " in repr(crf.run)  # where it is told
        sf.write(crf, tmp_path / "m.json")
        files.append((tmp_path / "m.json").read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("objective", [sf.Margin("tag"), sf.objectives.Perceptron("tag", averaged=False)])
def test_separable_labels_are_learned_without_a_mistake(objective: Any) -> None:
    penalty = sf.L2(1e-3) if isinstance(objective, sf.Margin) else None
    crf = fitted(objective=objective, penalty=penalty)
    assert list(crf.predict(rows())) == ROWS["tag"]
    assert crf.run is not None
    assert crf.run.converged
    assert type(objective).__name__ in crf.fit_info or "margins" in crf.fit_info
    if isinstance(objective, sf.Margin):
        assert -crf.run.log_likelihood == pytest.approx(0.0, abs=0.05)  # no loss is left


def test_the_gap_of_margins_closes_and_bounds_the_optimum() -> None:
    crf = sf.fit(NOISY, rows(noisy()), objective=sf.Margin("y"), penalty=sf.L2(1), tol=1e-3, max_iter=3000)
    rough = sf.fit(NOISY, rows(noisy()), objective=sf.Margin("y"), penalty=sf.L2(1), tol=0.1)
    assert crf.run is not None
    assert rough.run is not None
    assert crf.run.bound <= 1e-3 * crf.run.objective
    assert rough.run.objective - rough.run.bound <= crf.run.objective <= rough.run.objective + 1e-9
    gaps = [step.bound for step in crf.run.trace]
    assert all(b <= a + 1e-9 for a, b in pairwise(gaps))
    assert gaps[0] == 60.0  # at w = 0 each label is worth its cost


def test_the_margin_is_the_hinge_loss_of_all_labellings() -> None:
    table = noisy(8)
    crf = sf.fit(NOISY, rows(table), objective=sf.Margin("y"), penalty=sf.L2(0.3), tol=0.05)
    codes = np.array([crf.labels.index(y) for y in table["y"]])
    loss, at = 0.0, 0
    for own in scores_of(crf, rows(table)):
        truth = codes[at : at + len(own)]
        paths, values = enumerated(own, crf.transitions)
        costs = np.array([np.count_nonzero(np.array(p) != truth) for p in paths])
        loss += (values + costs).max() - values[paths.index(tuple(truth.tolist()))]
        at += len(own)
    assert crf.run is not None
    assert crf.run.objective == pytest.approx(loss + 0.3 * (crf.weight_vector**2).sum(), abs=1e-8)


def test_averaged_weights_are_the_mean_of_those_on_the_way() -> None:
    table = noisy(20)
    for n in (1, 3):
        crf = sf.fit(NOISY, rows(table), objective=sf.objectives.Perceptron("y", epochs=n))
        from suffice.learning.crf.fit import open_columns
        from suffice.learning.crf.margin import PerceptronWalk
        from suffice.learning.crf.problem import LabelProblem

        class Noted(PerceptronWalk):
            """It adds up the weights after each sequence."""

            total: Any = 0.0

            def __setattr__(self, name: str, value: Any) -> None:
                super().__setattr__(name, value)
                if name == "n" and value:
                    self.total = self.total + self.w

        problem = LabelProblem.of(NOISY, open_columns(NOISY, rows(table)))
        walk = Noted(problem.features, np.zeros(crf.n_weights))
        for _ in range(n):
            for block, _partly in problem.blocks():
                walk.through(block)
        assert walk.n == n * problem.sequences.n_sequences
        np.testing.assert_allclose(crf.weight_vector, walk.total / walk.n, atol=1e-12)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"objective": sf.objectives.Perceptron("tag"), "penalty": sf.L2(1)}, "Perceptron has no penalty"),
        ({"objective": sf.Margin("tag"), "penalty": None}, r"L2\\(c2\\) alone"),
        ({"objective": sf.Margin("tag"), "penalty": sf.L1(1) + sf.L2(1)}, r"L2\\(c2\\) alone"),
        ({"method": sf.HillClimb()}, "LBFGS"),
    ],
)
def test_principles_say_what_they_do_not_take(how: Any, message: str) -> None:
    with pytest.raises(sf.SufficeError, match=message.replace("\\\\", "\\")):
        fitted(**how)


def test_principles_that_need_all_labels_leave_others_out() -> None:
    some = {**ROWS, "tag": [None, *ROWS["tag"][1:]]}
    with pytest.warns(sf.SufficeNote, match="Perceptron learns from sequences with all of their labels: 1 with gaps"):
        fitted(table=some, objective=sf.objectives.Perceptron("tag"), penalty=None)


def test_a_sequence_of_one_and_a_unique_column() -> None:
    table = {"s": list(range(40)), "id": [f"i{i}" for i in range(40)], "y": ["a", "b"] * 20}
    with pytest.warns(sf.SufficeNote, match="'id': nearly every row has a value of its own"):
        crf = sf.fit(sf.LinearChain("y", [sf.Window(["id"])]), rows(table), penalty=sf.L2(1))
    assert len(crf.features.before) == 0
    assert list(crf.predict(rows(table))) == table["y"]


def test_the_tagger_of_scikit_learn_takes_what_crfsuite_takes() -> None:
    from sklearn.base import clone

    from suffice.interfaces.estimators import CrfTagger

    ids = np.array(ROWS["s"])
    X = [
        [{"word": ROWS["word"][i], "upper": ROWS["word"][i].istitle(), "length": 1.0} for i in np.flatnonzero(ids == s)]
        for s in range(3)
    ]
    y = [[ROWS["tag"][i] for i in np.flatnonzero(ids == s)] for s in range(3)]
    model = clone(CrfTagger(c2=0.1, all_possible_transitions=True)).fit(X, y)
    assert model.predict(X) == y
    assert model.score(X, y) == 1.0
    assert model.classes_ == ["D", "N", "P", "V"]
    assert len(model.crf_.features.before) == 16
    assert sum(model.predict_marginals(X)[0][0].values()) == pytest.approx(1.0)
    with pytest.warns(sf.SufficeNote, match="1 of 4 sequences are empty"):
        assert model.predict([*X, []])[-1] == []
    assert model.predict([[]]) == [[]]
    lists = [[[f"w={step['word']}"] for step in own] for own in X]
    assert CrfTagger(c1=0.01, c2=0.1).fit(lists, y).predict(lists) == y
    with pytest.raises(sf.SufficeError, match="sequence 1 has 6 steps and 5 labels"):
        CrfTagger().fit(X, [y[0][1:], *y[1:]])


def test_the_first_word_of_a_sentence_is_no_unknown_next_word() -> None:
    """Training data read again has nothing that training did not see: warnings are errors here."""
    crf = fitted(sf.LinearChain("tag", [sf.Window(["word"], at=(-1, 0, 1))]))
    assert list(crf.predict(rows())) == ROWS["tag"]
    with pytest.warns(sf.SufficeNote, match=r"ignored: word\[-1\] 1, word 1, of 16 steps"):
        crf.predict(rows({**ROWS, "word": ["zzz", *ROWS["word"][1:]]}))


def test_labels_that_only_the_test_data_have_are_missed() -> None:
    """They stand in the table with recall 0, and their entities count as there: F1 was too good without them."""
    bio = {"s": [1] * 6, "w": list("abcdef"), "y": ["B-P", "I-P", "O", "O", "O", "B-P"]}
    crf = sf.fit(sf.LinearChain("y", [sf.Window(["w"])]), sf.sequences(bio, by="s"), penalty=sf.L2(0.01))
    with pytest.warns(sf.SufficeNote, match="does not know the label 'B-Q'"):
        found = crf.evaluate(sf.sequences({**bio, "y": ["B-P", "I-P", "O", "B-Q", None, "B-P"]}, by="s"))
    assert (found.n_right, found.n, found.n_unknown) == (4, 5, 1)
    assert found.recall("B-Q") == 0.0
    assert found.kinds == ("P", "Q")
    assert found.entities.tolist() == [[2, 0], [2, 0], [2, 1]]
    assert found.entity_f1 == pytest.approx(4 / 5)


def test_entities_of_bioes() -> None:
    from suffice.models.linear_chain.reading import Evaluation

    labels = ["B-P", "E-P", "I-P", "O", "S-P"]
    true, found = np.array([0, 2, 1, 1, 4, 4, 3, 0, 1]), np.array([0, 2, 1, 3, 4, 4, 3, 0, 2])
    result = Evaluation.of(true, found, np.array([7, 2]), labels)
    assert result.entities[:, 0].tolist() == [4, 4, 5]  # an E alone is an entity, and an I ends one, as in conlleval


def test_one_label_is_noted() -> None:
    with pytest.warns(sf.SufficeNote, match="every 'tag' is 'D': there is nothing to tell apart"):
        fitted(table={**ROWS, "tag": ["D"] * len(KEPT)})


def test_items_of_lists_are_texts_of_their_own_and_pairs_are_counted_together() -> None:
    from suffice.basis.variables import LIST
    from suffice.models.linear_chain.encoding import PairCounts
    from suffice.models.linear_chain.vocabulary import texts_of

    found = texts_of(sf.labels.Lower("word"), sf.Finite("word", ["A", f"{LIST}B{LIST}C"]))
    assert (found.flat, found.sizes.tolist()) == (["a", "b", "c"], [1, 2])
    total = PairCounts(np.array([1, 4]), np.array([2.0, 1.0])) + PairCounts(np.array([4]), np.array([5.0]))
    assert (total.keys.tolist(), total.counts.tolist(), total.at(np.array([0, 4])).tolist()) == ([1, 4], [2.0, 6.0], [0.0, 6.0])
