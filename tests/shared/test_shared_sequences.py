"""The treebank en_ewt as sequences of words, and a tagger of them; earthquakes as counts of hidden states.

Run by `make reference`; it needs the folder ../shared, or the one that SUFFICE_SHARED names.
"""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

SHARED = Path(os.environ.get("SUFFICE_SHARED", Path(__file__).parents[3] / "shared")) / "data"


def test_a_treebank_is_read_quickly() -> None:
    train, dev, test = (SHARED / "sequences" / f"en_ewt-{part}.tsv.gz" for part in ("train", "dev", "test"))
    assert [len(sf.labels.read_conll(path)) for path in (dev, test)] == [25_147, 25_094]
    start = time.process_time()
    table = sf.labels.read_conll(train, ["word", "upos", "xpos"])
    assert time.process_time() - start < 0.4
    assert len(table) == 204_577
    sentences = sf.sequences(table, by="sentence")
    assert (sentences.n_sequences, sentences.n_steps) == (12_544, 204_577)
    assert sentences.schema["upos"].n_states == 17  # type: ignore[union-attr]


WORDS, UNSEEN = ["word", "upos", "xpos"], "<unseen>"


@cache
def tagger() -> sf.Chain:
    """Words by tags, counted in the training part; one more word stands for all that are not there."""
    table = sf.labels.read_conll(SHARED / "sequences" / "en_ewt-train.tsv.gz", WORDS)
    words = sf.Finite("word", [*sorted(set(table["word"].to_pylist())), UNSEEN])
    rows = sf.sequences(table.select(["sentence", "word", "upos"]), by="sentence", variables={"word": words})
    return sf.fit("upos[-1] -> upos -> word", rows, prior=sf.Dirichlet(1))


def sentences(part: str, unseen: str | None) -> tuple[sf.chains.Sequences, Any]:
    """The words of a part, those that the tagger does not know as one word or as missing cells; and the true tags."""
    table = sf.labels.read_conll(SHARED / "sequences" / f"en_ewt-{part}.tsv.gz", WORDS)
    words: Any = tagger().variables["word"]
    known = set(words.states)
    cells = [w if w in known else unseen for w in table["word"].to_pylist()]
    rows = {"sentence": table["sentence"].to_numpy(), "word": cells}
    return sf.sequences(rows, by="sentence", variables={"word": words}), np.array(table["upos"].to_pylist())


@pytest.mark.parametrize(
    ("part", "best", "alone", "missing"), [("test", 21_292, 21_500, 21_241), ("dev", 21_283, 21_495, 21_226)]
)
def test_words_are_tagged(part: str, best: int, alone: int, missing: int) -> None:
    s, truth = sentences(part, UNSEEN)
    decoded = tagger().decode(s)
    assert (np.array(decoded["upos"]) == truth).sum() == best
    assert (np.array(tagger().posterior_decode(s)["upos"]) == truth).sum() == alone
    if part == "test":
        assert decoded.log_prob.sum() == pytest.approx(-189356.452443, abs=1e-5)
        assert tagger().log_likelihood(s) == pytest.approx(-182598.301895, abs=1e-5)
    s, truth = sentences(part, None)
    assert (np.array(tagger().decode(s)["upos"]) == truth).sum() == missing


FREE, SETTLED = sf.chains.Free(), sf.chains.Stationary()


@pytest.mark.parametrize(
    ("n", "first", "log_likelihood"),
    [
        (1, FREE, -391.9189281655),
        (2, FREE, -341.8787),
        (3, FREE, -328.5275),
        (1, SETTLED, -391.9189),
        (2, SETTLED, -342.3183),
        (3, SETTLED, -329.4603),
        (4, SETTLED, -327.8316),
    ],
)
def test_earthquakes(n: int, first: Any, log_likelihood: float) -> None:
    """Zucchini & MacDonald's models of yearly counts."""
    s, run = quakes(), states(n, first=first, starts=6 if n > 3 else 3, tol=1e-8, max_iter=1000)
    assert run.log_likelihood == pytest.approx(log_likelihood, abs=6e-5)
    if n == 3 and first == SETTLED:
        order = np.argsort(run.model["n"].rates)
        assert run.model["n"].rates[order] == pytest.approx([13.14573, 19.72101, 29.71437], abs=2e-3)
        assert run.model.stationary()[order] == pytest.approx([0.4436420, 0.4044983, 0.1518597], abs=2e-4)
        assert np.diag(run.model["state"].probs)[order] == pytest.approx([0.9546243, 0.8993673, 0.8033580], abs=2e-4)
        assert -2 * run.model.aic(s) == pytest.approx(676.9206, abs=2e-4)
        assert -2 * run.model.bic(s) == pytest.approx(700.976, abs=1e-3)


def test_four_states_of_earthquakes_with_free_starts() -> None:
    """There are many optima: at least as high as -326.6749, which was published, some are."""
    assert states(4, starts=20, seed=3, max_iter=300).log_likelihood > -326.6749


@pytest.mark.parametrize(("n", "log_prob"), [(2, -346.625298), (3, -335.433673)])
def test_the_best_path_of_earthquakes(n: int, log_prob: float) -> None:
    model = states(n, starts=3, tol=1e-13, max_iter=5000).model
    assert model.decode(quakes()).log_prob[0] == pytest.approx(log_prob, abs=2e-6)


def states(n: int, *, seed: int = 0, **how: Any) -> sf.results.EmRun:
    """Counts of n hidden states."""
    hidden = [sf.Finite("state", [str(i) for i in range(n)])]
    return sf.em("state[-1] -> state -> n", quakes(), hidden=hidden, seed=seed, method=sf.methods.Squarem(), **how)


def quakes() -> sf.chains.Sequences:
    rows = np.loadtxt(SHARED / "sequences" / "earthquakes.csv", delimiter=",", skiprows=1)
    return sf.sequences({"n": rows[:, -1]}, variables={"n": sf.Count("n")})
