"""The treebank en_ewt tagged by linear chains: golden numbers, and crfsuite beside it where it is installed.

Run by `make reference`; it needs the folder ../shared, or the one that SUFFICE_SHARED names.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

SHARED = Path(os.environ.get("SUFFICE_SHARED", Path(__file__).parents[3] / "shared")) / "data"
FEATURES = [sf.Window(["word", sf.labels.Suffix("word", 3), sf.labels.Shape("word")]), sf.Window(["word"], at=(-1, 1))]


def table(part: str) -> Any:
    return sf.labels.read_conll(SHARED / "sequences" / f"en_ewt-{part}.tsv.gz", ["word", "upos", "xpos"])


def sentences(part: str) -> sf.chains.Sequences:
    return sf.sequences(table(part).select(["sentence", "word", "upos"]), by="sentence")


def test_the_optimum_with_an_l2() -> None:
    crf = sf.fit(sf.LinearChain("upos", FEATURES, min_count=3), sentences("dev"), penalty=sf.L2(1))
    assert crf.n_weights == 5417
    assert crf.run is not None
    assert crf.run.trace[0].objective == pytest.approx(71246.8160, abs=1e-4)
    assert crf.run.trace[0].objective == pytest.approx(25_147 * np.log(17), abs=1e-6)
    assert crf.run.objective == pytest.approx(11762.30903, abs=2e-5)
    assert crf.run.bound <= 2e-5
    assert abs(crf.evaluate(sentences("test")).n_right - 22_003) <= 15


def test_an_l1_comes_below_what_crfsuite_reached() -> None:
    crf = sf.fit(sf.LinearChain("upos", FEATURES), sentences("dev"), penalty=sf.L1(1))
    assert crf.n_weights == 26_988
    assert crf.run is not None
    assert crf.run.objective <= 9372.20
    assert abs(int(np.count_nonzero(crf.weight_vector)) - 2725) <= 60
    assert abs(crf.evaluate(sentences("test")).n_right - 22_320) <= 30


@pytest.mark.parametrize(("penalty", "c1", "c2"), [(sf.L2(1), 0.0, 1.0), (sf.L1(0.5) + sf.L2(0.1), 0.5, 0.1)])
def test_crfsuite_is_at_the_same_place_after_as_many_iterations(penalty: Any, c1: float, c2: float, tmp_path: Path) -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite")
    rows, shape = table("dev").to_pydict(), sf.labels.Shape("word")
    trainer = pycrfsuite.Trainer(verbose=False)
    cuts = np.flatnonzero(np.diff(rows["sentence"], prepend=-1, append=-1)).tolist()
    for first, last in pairwise(cuts):
        words = rows["word"][first:last]
        trainer.append([attributes(words, i, shape) for i in range(len(words))], rows["upos"][first:last])
    trainer.set_params({"c1": c1, "c2": c2, "max_iterations": 20})
    trainer.train(str(tmp_path / "model"))
    crf = sf.fit(sf.LinearChain("upos", FEATURES), sentences("dev"), penalty=penalty, max_iter=20)
    assert crf.run is not None
    assert crf.run.trace[-1].objective == pytest.approx(trainer.logparser.last_iteration["loss"], rel=1e-6)


def attributes(words: list[str], i: int, shape: sf.labels.Shape) -> list[str]:
    before, after = words[i - 1] if i else "<s>", words[i + 1] if i + 1 < len(words) else "</s>"
    word = words[i]
    return ["bias", f"w={word}", f"e={word[-3:]}", f"h={shape.of(word)}", f"p={before}", f"n={after}"]


@pytest.mark.parametrize(
    ("file", "graph", "y", "best"),
    [
        ("titanic_persons.csv", "Survived -> Class; Survived -> Sex; Survived -> Age", "Survived", -1105.03055285),
        ("ucb_admissions.csv.gz", "Admit -> Gender; Admit -> Dept", "Admit", -2593.74424709),
    ],
)
def test_naive_bayes_by_conditional_likelihood(file: str, graph: str, y: str, best: float) -> None:
    """As logistic regression (REFERENCE.md); by maximum likelihood it is lower, but the joint likelihood is higher."""
    from suffice.learning.conditional.discriminative import TargetTables, blanket_rows

    path = SHARED / "tables" / file
    told, plain = sf.fit(graph, path, objective=sf.Conditional(y)), sf.fit(graph, path)
    losses = []
    for bn in (told, plain):
        names = [y, *bn.dag.children(y)]
        tables = TargetTables.of(bn, y, names, blanket_rows(bn, y, names, path))
        losses.append(-tables.loss(tables.start, 0.0)[0])
    assert losses[0] == pytest.approx(best, abs=1e-7)
    assert losses[1] < losses[0]
    assert plain.log_likelihood(path) > told.log_likelihood(path)
