"""Linear chains of labels for scikit-learn: of a frame with a row for each step, or of lists of steps, each a dict or a
list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from suffice.basis.libraries import nw
from suffice.engines.sequences.sequences import Sequences, sequences
from suffice.errors import DataError, note
from suffice.learning.fit import fit
from suffice.models.linear_chain.windows import LinearChain, Window
from suffice.objectives.principles import L1, L2, PenaltySum

SEQUENCE, TEXTS, LABEL = "(sequence)", "(attributes)", "(label)"
"""Columns of our own, by names that no attribute has."""


@dataclass(eq=False, repr=False)
class CrfTagger(BaseEstimator):  # type: ignore[misc]
    """A conditional random field. The model is kept as `crf_`; arguments are those of sklearn-crfsuite.

    X is a list of sequences. Each is a list of steps: dicts, {"word": "cat", "is_upper": True, "length": 3.0}, in which texts
    and flags are attributes and numbers multiply their weight; or lists of texts, each an attribute. y has a list of labels for
    each.

    Or X is a frame (pandas, polars, Arrow, a dict of columns), a row for each step: `by` is the column that says which sequence
    it belongs to, `order` the one by which steps are ordered, and `features` are windows on the others, by default all of them
    at the step itself. y has a label for each row, or is the name of their column. Answers then have a row for each row.

    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> CrfTagger(c2=0.1).fit(X, [["D", "N"], ["D", "N"]]).predict([[{"word": "a"}, {"word": "cat"}]])
    [['D', 'N']]
    >>> rows = {"s": [1, 1, 2, 2], "word": ["the", "cat", "a", "dog"]}
    >>> CrfTagger(c2=0.1, by="s").fit(rows, ["D", "N", "D", "N"]).predict({"s": [1, 1], "word": ["a", "cat"]})
    array(['D', 'N'], dtype=object)
    """

    c1: float = 0.0
    c2: float = 1.0
    _: KW_ONLY
    max_iterations: int | None = None
    min_freq: int = 0
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    objective: Any = None
    by: str | None = None
    order: str | None = None
    features: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn weights from sequences X and their labels y."""
        self.numbers_: list[str] = []
        if is_frame(X):
            label = y if isinstance(y, str) else LABEL
            rows = self._steps(X if isinstance(y, str) else with_column(X, LABEL, y))
            names = [n for n in rows.columns if n not in (label, self.by, self.order)]
            if self.features is None and not names:
                raise DataError("the frame has no column but those of the label, the sequences and their order")
            windows, bias = ([Window(names)] if self.features is None else self.features), True
        else:
            rows, label = self._sequences_and_labels(X, y), LABEL
            windows, bias = [Window([TEXTS, *self.numbers_])], False
        more = {"bias": bias, "all_transitions": self.all_possible_transitions}
        chain = LinearChain(label, windows, self.min_freq, self.all_possible_states, **more)
        parts = [kind(c) for kind, c in ((L1, self.c1), (L2, self.c2)) if c]
        penalty = PenaltySum(tuple(parts)) if parts else None
        goal = replace(self.objective, target=label) if hasattr(self.objective, "target") else self.objective
        self.crf_ = fit(chain, rows, objective=goal, penalty=penalty, progress=False, max_iter=self.max_iterations)
        self.classes_ = list(self.crf_.labels)
        return self

    def _steps(self, X: Any) -> Sequences:
        return sequences(X, by=self.by, order=self.order)

    def _sequences_and_labels(self, X: Any, y: Any) -> Sequences:
        if self.by is not None or self.order is not None or self.features is not None:
            raise DataError("by, order and features are about the columns of a frame, and X is a list of sequences")
        if len(X) != len(y):
            raise DataError(f"there are {len(X):,} sequences and {len(y):,} lists of labels")
        for i, (steps, labels) in enumerate(zip(X, y, strict=True)):
            if len(steps) != len(labels):
                raise DataError(f"sequence {i + 1} has {len(steps):,} steps and {len(labels):,} labels")
        self.numbers_ = numbers_in(X)
        return as_rows(X, self.numbers_, {LABEL: [str(label) for own in y for label in own]})

    def predict(self, X: Any) -> Any:
        """The best labels of each sequence; of a frame a column of them."""
        check_is_fitted(self)
        if is_frame(X):
            return self.crf_.predict(self._steps(X))
        found = self.crf_.predict(as_rows(X, self.numbers_)) if any(map(len, X)) else []
        return split(list(found), X)

    def predict_marginals(self, X: Any) -> Any:
        """p(label | all else) of each step of each sequence, as dicts; of a frame a frame, with a column for each label."""
        check_is_fitted(self)
        if is_frame(X):
            return self.crf_.predict_proba(self._steps(X))
        if not any(map(len, X)):
            return [[] for _ in X]
        probs = self.crf_.predict_proba(as_rows(X, self.numbers_))
        columns = [np.asarray(probs[label]).tolist() for label in self.classes_]
        return split([dict(zip(self.classes_, p, strict=True)) for p in zip(*columns, strict=True)], X)

    def score(self, X: Any, y: Any) -> float:
        """The share of labels that are found."""
        if not is_frame(X):
            pairs = [(a, str(b)) for own, true in zip(self.predict(X), y, strict=True) for a, b in zip(own, true, strict=True)]
        else:
            true = y if not isinstance(y, str) else X[y] if isinstance(X, Mapping) else nw.from_native(X, eager_only=True)[y]
            pairs = [(a, str(b)) for a, b in zip(list(self.predict(X)), list(true), strict=True)]
        return sum(str(a) == b for a, b in pairs) / len(pairs)


def is_frame(X: Any) -> bool:
    """Whether X has columns, rather than sequences."""
    return isinstance(X, Mapping) or hasattr(X, "columns")


def with_column(X: Any, name: str, cells: Any) -> Any:
    """A frame with one more column of texts."""
    texts = [None if c is None or c != c else str(c) for c in cells]
    frame = X if isinstance(X, Mapping) else nw.from_native(X, eager_only=True)
    n = len(next(iter(frame.values()), ())) if isinstance(frame, Mapping) else len(frame)
    if n != len(texts):
        raise DataError(f"there are {n:,} rows and {len(texts):,} labels")
    if isinstance(frame, Mapping):
        return {**frame, name: texts}
    column = nw.new_series(name, texts, nw.String, backend=frame.implementation)
    if frame.implementation.is_pandas():
        column = nw.from_native(column.to_native().set_axis(X.index), series_only=True)
    return frame.with_columns(column).to_native()


def numbers_in(X: Any) -> list[str]:
    """The names of the numbers among the attributes of steps."""
    cells = (cell for steps in X for step in steps if isinstance(step, Mapping) for cell in step.items())
    return sorted({n for n, v in cells if isinstance(v, (int, float, np.number)) and not isinstance(v, (bool, np.bool_))})


def as_rows(X: Any, numbers: Sequence[str], more: Mapping[str, list[str]] | None = None) -> Sequences:
    """Sequences of steps as rows: a list of texts for each, and a column for each number."""
    if empty := sum(not len(steps) for steps in X):
        note(f"{empty:,} of {len(X):,} sequences are empty: there is nothing to label in them")
    steps = [step for own in X for step in own]
    if not steps:
        raise DataError("there are no steps: every sequence is empty")
    ids = [i for i, own in enumerate(X) for _ in own]
    columns: dict[str, Any] = {}
    for name in numbers:
        values = [step.get(name, 0.0) if isinstance(step, Mapping) else 0.0 for step in steps]
        columns[name] = np.array([float(x) if isinstance(x, (int, float, np.number)) else 0.0 for x in values])
    return sequences({SEQUENCE: ids, TEXTS: [_texts(s, numbers) for s in steps], **columns, **(more or {})}, by=SEQUENCE)


def _texts(step: Any, numbers: Sequence[str]) -> list[str]:
    if not isinstance(step, Mapping):
        return [str(x) for x in step]
    flags = [n for n, v in step.items() if isinstance(v, (bool, np.bool_)) and v]
    words = {n: v for n, v in step.items() if n not in numbers and not isinstance(v, (bool, np.bool_, type(None)))}
    return [*flags, *(f"{n}:{v}" for n, v in words.items())]


def split(values: list[Any], X: Any) -> list[list[Any]]:
    """Values of steps as one list for each sequence."""
    ends = np.cumsum([len(steps) for steps in X]).tolist()
    return [values[end - len(steps) : end] for end, steps in zip(ends, X, strict=True)]
