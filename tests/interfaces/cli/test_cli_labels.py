"""Labels in a row on the command line, called as a user calls it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import suffice as sf

TEXT = "the/D cat/N sat/V on/P the/D mat/N | a/D dog/N saw/V the/D Cat/N | Mary/N ran/V to/P a/D house/N | dogs/N ran/V"
FEATURES = "word@-1,0,1; suffix2; shape"
ASKED = ("--by", "sentence")


@pytest.fixture
def sentences(run) -> pd.DataFrame:
    tokens = [(i, *token.split("/")) for i, sentence in enumerate(TEXT.split(" | ")) for token in sentence.split()]
    rows = pd.DataFrame(tokens, columns=["sentence", "word", "tag"])
    rows.to_csv("rows.csv", index=False)
    return rows


def test_fit_predict_show(run, sentences, monkeypatch) -> None:
    asked = ("--chain", "tag", "--features", FEATURES, "--penalty", "l1:0.01+l2:0.1", *ASKED)
    code, _, err = run("fit", "rows.csv", *asked, "-o", "tagger.json.gz")
    assert code == 0, err
    windows = [sf.Window(["word"], at=(-1, 0, 1)), sf.Window([sf.labels.Suffix("word", 2)]), sf.Window([sf.labels.Shape("word")])]
    crf = sf.fit(sf.LinearChain("tag", windows), sf.sequences(sentences, by="sentence"), penalty=sf.L1(0.01) + sf.L2(0.1))
    assert (sf.read("tagger.json.gz").weight_vector == crf.weight_vector).all()
    code, _, err = run("predict", "tagger.json.gz", "rows.csv", *ASKED, "-o", "labels.csv", "--keep", "word")
    assert code == 0, err
    found = pd.read_csv("labels.csv")
    assert list(found.columns[:3]) == ["sentence", "word", "tag"]
    assert list(found["tag"]) == list(crf.predict(sf.sequences(sentences, by="sentence")))
    assert found[[c for c in found if c.startswith("P(")]].sum(axis=1).to_numpy() == pytest.approx(1.0, abs=1e-9)
    sorts, weights = [], type(crf).weights
    monkeypatch.setattr(type(crf), "weights", property(lambda crf: sorts.append(crf) or weights.fget(crf)))
    code, out, err = run("show", "tagger.json.gz", "--top", "3")
    assert code == 0, err
    assert len(sorts) == 1  # a frame of all weights, sorted and named, is made once
    assert len(out.strip().splitlines()[-3:]) == 3
    assert " -> " in out.strip().splitlines()[-1]


@pytest.mark.parametrize("objective", ["perceptron", "margin"])
def test_other_principles(run, sentences, objective) -> None:
    penalty = ("--penalty", "l2:0.1") if objective == "margin" else ()
    code, _, err = run(
        "fit", "rows.csv", "--chain", "tag", "--features", FEATURES, "--objective", objective, *penalty, *ASKED, "-o", "m.json"
    )
    assert code == 0, err
    labels = sf.read("m.json").predict(sf.sequences(sentences.drop(columns="tag"), by="sentence"))
    assert list(labels) == list(sentences["tag"])


def test_a_network_is_fitted_to_tell_one_node(run, sentences) -> None:
    rows = pd.DataFrame({"ill": list("nnyynyny") * 4, "cough": list("nyyynnny") * 4, "fever": list("nnynyyyn") * 4})
    rows.to_csv("people.csv", index=False)
    graph = "ill -> cough; ill -> fever"
    code, _, err = run("fit", graph, "people.csv", "-o", "told.json", "--objective", "conditional:ill", "--penalty", "l2:0.01")
    assert code == 0, err
    wanted = sf.fit(graph, rows, objective=sf.Conditional("ill"), penalty=sf.L2(0.01))
    assert sf.read("told.json").predict_proba(rows, "ill")["y"].to_numpy() == pytest.approx(
        wanted.predict_proba(rows, "ill")["y"].to_numpy()
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fit", "rows.csv", "--chain", "tag"), "--chain needs --features"),
        (("fit", "rows.csv", "--chain", "tag", "--features", "suffix3"), "name it, as in suffix3:word"),
        (("fit", "rows.csv", "--chain", "tag", "--features", "word@x"), "after @ stand steps"),
        (("fit", "rows.csv", "--chain", "tag", "--features", "tag"), "tag"),
        (("fit", "rows.csv", "--chain", "tags", "--features", "word", *ASKED), "tags"),
        (("fit", "a -> b", "rows.csv", "--chain", "tag", "--features", "word"), "--chain takes no graph"),
        (("fit", "a -> b", "rows.csv", "--objective", "conditional"), "--objective conditional is about one variable"),
        (("fit", "rows.csv", "--chain", "tag", "--features", "word", "--penalty", "l2:-1", *ASKED), "above 0"),
        (("fit", "rows.csv", "--chain", "tag", "--features", "word", "--bins", "n=5", *ASKED), "--bins is for networks of rows"),
        (("query", "tagger.json", "P(tag)"), "a conditional random field"),
        (("score", "tagger.json", "rows.csv"), "a conditional random field"),
        (("sample", "tagger.json", "-n", "3"), "a conditional random field"),
        (("decode", "tagger.json", "rows.csv"), "not a chain"),
        (("show", "tagger.json", "--dot"), "a conditional random field"),
        (("convert", "tagger.json", "tagger.bif"), "tagger.bif"),
        (("compare", "tagger.json", "asia"), "without arrows"),
        (("predict", "tagger.json", "rows.csv", "--target", "word"), "leave --target out"),
        (("predict", "asia", "rows.csv", "--target", "lung", *ASKED), "no model of sequences"),
    ],
)
def test_refused(run, sentences, arguments, said) -> None:
    chain = sf.LinearChain("tag", [sf.Window(["word"])])
    sf.write(sf.fit(chain, sf.sequences(sentences, by="sentence"), penalty=sf.L2(0.1)), "tagger.json")
    out_file = ("-o", "net.json") if arguments[0] == "fit" else ()
    code, out, err = run(*arguments, *out_file)
    assert (code, out) == (1, ""), (out, err)
    assert said in err
    assert not Path("net.json").exists()


TAGGED = "John B-PER\nSmith I-PER\nlives O\nin O\nNew B-LOC\nYork I-LOC\n\nMary B-PER\nlikes O\nParis B-LOC\n"


def test_constraints_second_order_and_weights_of_labels(run) -> None:
    Path("t.conll").write_text(TAGGED)
    asked = ("--chain", "column2", "--penalty", "l2:0.1", "--features", "column1; suffix2; pairs(shape)")
    more = ("--transitions", "bio", "--labels-back", "2", "--label-weights", "B-PER=5,O=0.5")
    code, _, err = run("fit", "t.conll", *asked, *more, "-o", "m.json")
    assert code == 0, err
    crf = sf.read("m.json")
    windows = [
        sf.Window(["column1"]),
        sf.Window([sf.labels.Suffix("column1", 2)]),
        sf.Window([sf.labels.Shape("column1")], pairs=True),
    ]
    assert crf.linear_chain == sf.LinearChain("column2", windows, order=2, transitions=sf.labels.BIO())
    assert "label weights {'B-PER': 5.0, 'O': 0.5}" in crf.fit_info
    code, _, err = run("predict", "m.json", "t.conll", "-o", "found.csv")
    assert code == 0, err
    assert list(pd.read_csv("found.csv")["column2"])[:2] == ["B-PER", "I-PER"]
    rules = "forbid: O -> I-PER; <s> -> I-LOC"
    code, _, err = run("fit", "t.conll", *asked, "--transitions", rules, "-o", "m.json")
    assert code == 0, err
    assert sf.read("m.json").linear_chain.transitions == (sf.labels.Transitions(forbidden=[("O", "I-PER"), ("<s>", "I-LOC")]),)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--transitions", "bilou"), "--transitions is bio, bioes"),
        (("--transitions", "forbid: O"), "--transitions is bio, bioes"),
        (("--transitions", "forbid: O -> B-LOC; B-PER -> I-PER"), "'I-PER' after 'B-PER' is forbidden"),
        (("--label-weights", "B-PER"), "--label-weights is a weight"),
        (("--label-weights", "B-PER=-1"), "above 0"),
        (("--label-weights", "B-PER=5", "--objective", "margin"), "--label-weights goes with --objective conditional"),
        (("--transitions", "bio", "--objective", "perceptron"), "Perceptron is for chains without"),
    ],
)
def test_refused_of_labels(run, arguments, said) -> None:
    Path("t.conll").write_text(TAGGED)
    code, out, err = run("fit", "t.conll", "--chain", "column2", "--features", "column1", *arguments, "-o", "m.json")
    assert (code, out) == (1, ""), (out, err)
    assert said in err
    code, _, err = run("fit", "a -> b", "t.conll", "--transitions", "bio", "-o", "m.json")
    assert code == 1
    assert "--transitions is for a chain of labels" in err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.conll", "the D\ncat N\n   \na D\ndog N\nran V\n"),
        ("t.conll", "the D\r\ncat N\r\n\r\na D\r\ndog N\r\nran V\r\n"),
        ("t.tsv", "the\tD\ncat\tN\n\na\tD\ndog\tN\nran\tV\n\n"),
    ],
)
def test_blank_lines_end_sentences(run, name, text) -> None:
    """Without --by: they did so only with it, and one sentence was all of the file."""
    Path(name).write_bytes(text.encode())
    code, _, err = run("fit", name, "--chain", "column2", "--features", "column1@0,1", "--penalty", "l2:0.1", "-o", "m.json")
    assert code == 0, err
    crf = sf.read("m.json")
    assert "2 sequences (5 steps)" in crf.fit_info
    assert "column1[+1]=</s>" in crf.attributes
    code, _, err = run("predict", "m.json", name, "-o", "found.csv", "--keep", "column1")
    assert code == 0, err
    assert "never saw" not in err
    found = pd.read_csv("found.csv")
    assert list(found["sentence"]) == [1, 1, 2, 2, 2]
    assert list(found["column2"]) == list("DNDNV")


def test_a_tsv_with_names_of_columns_is_a_table(run) -> None:
    Path("t.tsv").write_text("word\ttag\n\nthe\tD\ncat\tN\n")
    code, _, err = run("fit", "t.tsv", "--chain", "tag", "--features", "word", "--penalty", "l2:0.1", "-o", "m.json")
    assert code == 0, err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("the\tD\ncat  N\n\na \tD\n", "t.conll, line 2: found 1 field where line 1 has 2; the file has tabs"),
        ("the D\ncat N\n\na D\ndog\n", "t.conll, line 5: found 1 field where line 1 has 2"),
        ("\n \n", "t.conll: the file is empty"),
    ],
)
def test_lines_that_cannot_be_read_are_named(run, text, said) -> None:
    Path("t.conll").write_text(text)
    code, out, err = run("fit", "t.conll", "--chain", "column2", "--features", "column1", "-o", "m.json")
    assert (code, out) == (1, "")
    assert said in err
