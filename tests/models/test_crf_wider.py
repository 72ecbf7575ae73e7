"""Linear chains with constraints, of second order, with weights of two labels by attribute: files, and what is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

TEXT = (
    "John/B-PER Smith/I-PER lives/O in/O New/B-LOC York/I-LOC ;/; "
    "Mary/B-PER likes/O Paris/B-LOC ;/; in/O London/B-LOC Mary/B-PER sings/O"
)
SENTENCES = [[token.rsplit("/", 1) for token in sentence.split()] for sentence in TEXT.split(" ;/; ")]
ROWS: dict[str, Any] = {
    "s": [f"s{i}" for i, own in enumerate(SENTENCES) for _ in own],
    "word": [w for own in SENTENCES for w, _ in own],
    "tag": [y for own in SENTENCES for _, y in own],
}
WORDS = [sf.Window(["word", sf.labels.Suffix("word", 2)])]
KINDS: dict[str, Any] = {
    "constrained": sf.LinearChain("tag", WORDS, transitions=sf.labels.BIO()),
    "second": sf.LinearChain("tag", WORDS, order=2),
    "by attribute": sf.LinearChain("tag", [*WORDS, sf.Window([sf.labels.Lower("word")], at=(0, -1), pairs=True)]),
    "all": sf.LinearChain(
        "tag",
        [*WORDS, sf.Window(["word"], pairs=True)],
        order=2,
        transitions=[sf.labels.BIO(), sf.labels.Transitions(forbidden=[("O", "O")], only=None)],
    ),
}


def rows(**changed: Any) -> sf.chains.Sequences:
    return sf.sequences({**ROWS, **changed}, by="s")


def fitted(kind: str = "constrained", **how: Any) -> sf.Crf:
    table = {"tag": ["B-LOC" if t == 3 else y for t, y in enumerate(ROWS["tag"])]} if kind == "all" else {}
    crf: sf.Crf = sf.fit(KINDS[kind], rows(**table), **{"penalty": sf.L2(0.1), **how})
    return crf


def test_rules_say_what_they_allow() -> None:
    labels = ["B-x", "B-y", "I-x", "I-y", "O"]
    bio = sf.labels.BIO().allowed(labels)
    assert bio.begin.tolist() == [True, True, False, False, True]
    assert bio.pairs[:, 2].tolist() == [True, False, True, False, False]
    assert bio.pairs[:, [0, 1, 4]].all()
    assert bio.end.all()
    labels = ["B-x", "E-x", "I-x", "O", "S-x", "E-y"]
    bioes = sf.labels.BIOES().allowed(labels)
    assert bioes.begin.tolist() == [True, False, False, True, True, False]
    assert bioes.pairs[0].tolist() == [False, True, True, False, False, False]
    assert bioes.pairs[1].tolist() == [True, False, False, True, True, False]
    assert bioes.end.tolist() == [False, True, False, True, True, True]
    alone = sf.labels.BIO().allowed(["B", "I", "O"])
    assert alone.pairs.tolist() == [[True, True, True], [True, True, True], [True, False, True]]


@pytest.mark.parametrize("kind", KINDS)
def test_files_pickles_and_warm_starts(kind: str, tmp_path: Path) -> None:
    crf = fitted(kind)
    sf.write(crf, tmp_path / "m.json")
    data = (tmp_path / "m.json").read_bytes()
    for again in (sf.read(tmp_path / "m.json"), pickle.loads(pickle.dumps(crf))):
        assert again.linear_chain == crf.linear_chain
        assert again == crf
        assert np.array_equal(again.log_prob(rows()), crf.log_prob(rows()))
        assert list(again.predict(rows())) == list(crf.predict(rows()))
        sf.write(again, tmp_path / "m.json")
        assert (tmp_path / "m.json").read_bytes() == data
    assert fitted(kind, start=crf).run.n_iterations == 0  # type: ignore[union-attr]
    assert eval(repr(crf.linear_chain), vars(sf) | vars(sf.labels)) == crf.linear_chain
    explained = crf.explain(rows(), 4)
    assert explained.label == crf.predict(rows())[4]
    assert "accuracy" in dir(crf.evaluate(rows()))


def test_files_of_plain_chains_have_no_more_keys(tmp_path: Path) -> None:
    sf.write(sf.fit(sf.LinearChain("tag", WORDS), rows(), penalty=sf.L2(1)), tmp_path / "m.json")
    text = json.loads((tmp_path / "m.json").read_text())
    assert not {"order", "transitions", "pair_first", "triples"} & set(text)
    sf.write(fitted("all"), tmp_path / "w.json")
    wrong = json.loads((tmp_path / "w.json").read_text())
    for key, value in (("triples", [[0, 0, 99]]), ("pair_first", [0]), ("transitions", [{"type": "boi"}]), ("order", 3)):
        (tmp_path / "x.json").write_text(json.dumps({**wrong, key: value}))
        with pytest.raises(sf.SufficeError):
            sf.read(tmp_path / "x.json")


def test_what_is_forbidden_is_never_said() -> None:
    crf = fitted()
    odd = rows(word=["Smith", "York", *ROWS["word"][2:]])
    labels = [y for found in crf.most_probable(odd, k=5) for y in found["tag"][:1]]
    assert not any(str(y).startswith("I-") for y in labels)
    assert np.asarray(crf.predict_proba(odd)["I-PER"])[0] == 0.0
    free = sf.fit(sf.LinearChain("tag", WORDS), rows(), penalty=sf.L2(0.1))
    assert free.predict(odd)[0] == "I-PER"
    assert crf.transitions[crf.labels.index("O"), crf.labels.index("I-PER")] == -np.inf
    assert crf.log_prob(rows(tag=["I-PER", *ROWS["tag"][1:]]))[0] == -np.inf
    assert "transitions=BIO()" in repr(crf.linear_chain)


def test_forbidden_labels_of_training_are_named_with_their_step() -> None:
    for tags, message in (
        ({3: "I-PER"}, r"sequence 's0', step 4 \(row 4\): 'I-PER' after 'O' is forbidden by BIO\(\)"),
        ({6: "I-LOC"}, r"sequence 's1', step 1 \(row 7\): 'I-LOC' at the start is forbidden"),
        ({2: None, 3: "I-PER"}, None),
        ({3: None, 4: None, 2: None, 5: "I-LOC"}, None),
    ):
        table = rows(tag=[tags.get(i, y) for i, y in enumerate(ROWS["tag"])])
        if message is None:
            with pytest.warns(sf.SufficeNote, match="without 'tag'"):
                sf.fit(KINDS["constrained"], table, penalty=sf.L2(1))
        else:
            with pytest.raises(sf.SufficeError, match=message):
                sf.fit(KINDS["constrained"], table, penalty=sf.L2(1))
    end = sf.LinearChain("tag", WORDS, transitions=sf.labels.Transitions(forbidden=[("I-LOC", "</s>")]))
    with pytest.raises(sf.SufficeError, match=r"sequence 's0', step 6 \(row 6\): 'I-LOC' at the end is forbidden"):
        sf.fit(end, rows(), penalty=sf.L2(1))
    gap = rows(tag=[None if i in (1, 2) else "I-LOC" if i == 3 else y for i, y in enumerate(ROWS["tag"])])
    only = sf.labels.Transitions(only=[(a, b) for a in set(ROWS["tag"]) for b in set(ROWS["tag"]) if "I-LOC" not in (a, b)])
    with pytest.raises(sf.SufficeError, match="'I-LOC' after a missing label is forbidden"):
        sf.fit(sf.LinearChain("tag", WORDS, transitions=only), gap, penalty=sf.L2(1))


def test_a_length_that_no_labels_fit_is_named() -> None:
    table = {"s": [1, 1, 2, 2], "x": list("abab"), "y": ["B-p", "E-p"] * 2}
    chain = sf.LinearChain("y", [sf.Window(["x"])], transitions=sf.labels.BIOES())
    crf = sf.fit(chain, sf.sequences(table, by="s"), penalty=sf.L2(1))
    assert list(crf.predict(sf.sequences({"x": ["b", "a"]}))) == ["B-p", "E-p"]
    with pytest.raises(sf.SufficeError, match=r"no labels are possible for a sequence of 3 steps, such as '7', under BIOES\(\)"):
        crf.predict(sf.sequences({"s": [6, 6, 7, 7, 7], "x": list("ababa")}, by="s"))


def test_sizes_are_foretold() -> None:
    n = 20_000
    labels = [f"l{i % 120}" for i in range(n)]
    chain = sf.LinearChain("y", [sf.Window(["x"])], order=2)
    with pytest.raises(sf.SufficeError, match=r"order=2 with 120 labels takes .* for a sequence of 20,000 steps"):
        sf.fit(chain, sf.sequences({"x": ["a"] * n, "y": labels}), penalty=sf.L2(1))


def test_triples_occur_so_often() -> None:
    tags = ROWS["tag"]
    starts = {i for i, s in enumerate(ROWS["s"]) if i == 0 or s != ROWS["s"][i - 1]}
    seen = {(tags[i - 2], tags[i - 1], tags[i]) for i in range(2, len(tags)) if not {i, i - 1} & starts}
    crf = fitted("second")
    features: Any = crf.features
    assert {tuple(crf.labels[j] for j in triple) for triple in features.triples} == seen
    often: Any = sf.fit(sf.LinearChain("tag", WORDS, order=2, min_count=2), rows(), penalty=sf.L2(1)).features
    assert len(often.triples) < len(seen)
    every: Any = sf.fit(sf.LinearChain("tag", WORDS, order=2, unseen=True), rows(), penalty=sf.L2(1)).features
    assert len(every.triples) == 5**3
    some: Any = sf.fit(
        sf.LinearChain("tag", WORDS, order=2, unseen=True, transitions=sf.labels.BIO()), rows(), penalty=sf.L2(1)
    ).features
    allowed = some.allowed.pairs
    assert len(some.triples) == sum(allowed[i, j] and allowed[j, k] for i in range(5) for j in range(5) for k in range(5))
    assert len(some.before) == allowed.sum()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (lambda: sf.LinearChain("tag", WORDS, order=3), "order of a linear chain is 1 or 2"),
        (lambda: sf.LinearChain("tag", WORDS, order=True), "order of a linear chain is 1 or 2"),
        (lambda: sf.LinearChain("tag", WORDS, transitions=sf.labels.BIO), r"takes BIO\(\)"),
        (lambda: sf.LinearChain("tag", WORDS, transitions="bio"), r"takes BIO\(\)"),
        (lambda: sf.labels.Transitions(forbidden=[("O",)]), "pairs of labels in a row"),
        (lambda: sf.labels.Transitions(forbidden=[("</s>", "O")]), "pairs of labels in a row"),
        (lambda: sf.labels.Transitions(only=["OB"]), "pairs of labels in a row"),
        (
            lambda: sf.fit(sf.LinearChain("word", [sf.Window(["tag"])], transitions=sf.labels.BIO()), rows()),
            "labels here have 'John'",
        ),
        (lambda: fitted(objective=sf.Margin("tag")), "Margin is for chains without"),
        (lambda: fitted(objective=sf.objectives.Perceptron("tag"), penalty=None), "Perceptron is for chains without"),
        (lambda: sf.Conditional("tag", label_weights={"O": 0.0}), "weight of the label 'O' is a number above 0"),
        (lambda: sf.Conditional("tag", label_weights=[5.0]), "given by label"),
        (
            lambda: sf.fit("a -> b", {"a": ["x", "y"], "b": ["x", "y"]}, objective=sf.Conditional("a", {"x": 2})),
            "for a LinearChain",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(what: Any, message: str) -> None:
    with pytest.raises(sf.SufficeError, match=message):
        what()


def test_labels_that_are_not_there_are_noted() -> None:
    chain = sf.LinearChain("tag", WORDS, transitions=sf.labels.Transitions(forbidden=[("O", "I-PERS")]))
    with pytest.warns(sf.SufficeNote, match="labels that are not there: 'I-PERS'; did you mean 'I-PER'"):
        sf.fit(chain, rows(), penalty=sf.L2(1))
    with pytest.warns(sf.SufficeNote, match="labels that are not there: 'I-PERS'; did you mean 'I-PER'"):
        sf.fit(KINDS["constrained"], rows(), penalty=sf.L2(1), objective=sf.Conditional("tag", label_weights={"I-PERS": 2}))


def test_cells_of_pairs_are_not_read_at_the_first_step() -> None:
    """Training data read again has nothing that training did not see: warnings are errors here."""
    alone = sf.LinearChain("tag", [sf.Window(["word"], pairs=True)])
    sf.fit(alone, rows(), penalty=sf.L2(1)).predict(rows())
    both = sf.fit(sf.LinearChain("tag", [sf.Window(["word"]), sf.Window(["word"], pairs=True)]), rows(), penalty=sf.L2(1))
    both.predict(rows())
    with pytest.warns(sf.SufficeNote, match=r"are ignored: word 1, of 13 steps"):
        both.predict(rows(word=["zzz", *ROWS["word"][1:]]))
