"""The tagger of scikit-learn's interface: frames as well as lists of lists of dicts."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import suffice as sf
from suffice.interfaces.estimators import CrfTagger

TEXT = "the/D cat/N sat/V on/P the/D mat/N | a/D dog/N saw/V the/D Cat/N | Mary/N ran/V to/P a/D house/N | dogs/N ran/V"
TOKENS = [(i, *token.split("/")) for i, sentence in enumerate(TEXT.split(" | ")) for token in sentence.split()]
ROWS = pd.DataFrame(TOKENS, columns=["sentence", "word", "tag"])
KINDS: dict[str, Any] = {
    "pandas": lambda d: d,
    "pandas, other index": lambda d: d.set_axis(np.arange(len(d))[::-1] + 7),
    "polars": pl.from_pandas,
    "arrow": lambda d: pa.Table.from_pandas(d, preserve_index=False),
    "dict": lambda d: {n: d[n].tolist() for n in d},
}


def wanted() -> sf.Crf:
    chain = sf.LinearChain("tag", [sf.Window(["word"])])
    return sf.fit(chain, sf.sequences(ROWS, by="sentence"), penalty=sf.L2(0.1), progress=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named", [True, False])
def test_frames_give_what_fit_gives(kind: str, named: bool) -> None:
    made = KINDS[kind]
    X, y = (made(ROWS), "tag") if named else (made(ROWS.drop(columns="tag")), ROWS["tag"].tolist())
    tagger = CrfTagger(c2=0.1, by="sentence").fit(X, y)
    assert np.array_equal(tagger.crf_.weight_vector, wanted().weight_vector)
    assert tagger.classes_ == ["D", "N", "P", "V"]
    new = made(ROWS.drop(columns="tag"))
    assert [str(x) for x in tagger.predict(new)] == ROWS["tag"].tolist()
    assert tagger.score(X, y) == 1.0
    probs = tagger.predict_marginals(new)
    np.testing.assert_allclose(sum(np.asarray(probs[c]) for c in tagger.classes_), 1.0)
    if kind.startswith("pandas"):
        assert tagger.predict(new).index.equals(new.index)
        assert probs.index.equals(new.index)


def test_a_frame_with_windows_an_order_and_another_principle() -> None:
    shuffled = ROWS.assign(at=np.arange(len(ROWS))).sample(frac=1.0, random_state=0)
    windows = [sf.Window(["word", sf.labels.Suffix("word", 2)]), sf.Window(["word"], at=(-1, 1))]
    tagger = CrfTagger(by="sentence", order="at", features=windows, c2=0.0, objective=sf.objectives.Perceptron("any")).fit(
        shuffled, "tag"
    )
    assert list(tagger.predict(shuffled)) == shuffled["tag"].tolist()
    assert "Perceptron" in tagger.crf_.fit_info
    few = CrfTagger(by="sentence", order="at", min_freq=2, max_iterations=3, all_possible_transitions=True).fit(shuffled, "tag")
    assert few.crf_.run.n_iterations <= 3
    assert (few.crf_.transitions != 0.0).sum() > 4


def test_it_is_cloned_searched_over_and_pickled() -> None:
    from sklearn.base import clone

    tagger = CrfTagger(0.01, 0.1, by="sentence", min_freq=1)
    again = clone(tagger)
    assert again.get_params() == tagger.get_params()
    assert set(tagger.get_params()) >= {"c1", "c2", "max_iterations", "min_freq", "all_possible_transitions", "by", "order"}
    fitted = again.set_params(c2=0.2).fit(ROWS, "tag")
    back = pickle.loads(pickle.dumps(fitted))
    assert list(back.predict(ROWS)) == list(fitted.predict(ROWS))
    assert back.classes_ == fitted.classes_
    lists = CrfTagger(c2=0.1).fit([[{"w": "a"}, {"w": "b"}]], [["A", "B"]])
    assert pickle.loads(pickle.dumps(lists)).predict([[{"w": "b"}]]) == lists.predict([[{"w": "b"}]])


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(sf.SufficeError, match="18 rows and 2 labels"):
        CrfTagger(by="sentence").fit(ROWS, ["D", "N"])
    with pytest.raises(sf.SufficeError, match="X is a list of sequences"):
        CrfTagger(by="sentence").fit([[{"w": "a"}]], [["A"]])
    with pytest.raises(sf.SufficeError, match="no column but those of the label"):
        CrfTagger(by="sentence").fit(ROWS[["sentence", "tag"]], "tag")
    with pytest.raises(sf.SufficeError, match="tags"):
        CrfTagger(by="sentence").fit(ROWS, "tags")
