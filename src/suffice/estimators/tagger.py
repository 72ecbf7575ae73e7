"""Linear chains of labels for scikit-learn: sequences are lists of steps, steps are dicts or lists of attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from suffice.engines.sequences import Sequences, sequences
from suffice.errors import DataError, note
from suffice.learning.fit import fit
from suffice.models.linear_chain.windows import LinearChain, Window
from suffice.objectives import L1, L2, PenaltySum

SEQUENCE, TEXTS, LABEL = "(sequence)", "(attributes)", "(label)"
"""Columns of our own, by names that no attribute has."""


@dataclass(eq=False, repr=False)
class CrfTagger(BaseEstimator):  # type: ignore[misc]
    """A conditional random field. The model is kept as `crf_`; arguments are those of sklearn-crfsuite.

    X is a list of sequences. Each is a list of steps: dicts, {"word": "cat", "is_upper": True, "length": 3.0}, in which texts and
    flags are attributes and numbers multiply their weight; or lists of texts, each an attribute. y has a list of labels for each.

    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> CrfTagger(c2=0.1).fit(X, [["D", "N"], ["D", "N"]]).predict([[{"word": "a"}, {"word": "cat"}]])
    [['D', 'N']]
    """

    c1: float = 0.0
    c2: float = 1.0
    _: KW_ONLY
    max_iterations: int | None = None
    min_freq: int = 0
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    objective: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn weights from sequences X and their labels y."""
        if len(X) != len(y):
            raise DataError(f"there are {len(X):,} sequences and {len(y):,} lists of labels")
        for i, (steps, labels) in enumerate(zip(X, y, strict=True)):
            if len(steps) != len(labels):
                raise DataError(f"sequence {i + 1} has {len(steps):,} steps and {len(labels):,} labels")
        self.numbers_ = numbers_in(X)
        labels = [str(label) for own in y for label in own]
        rows = as_rows(X, self.numbers_, {LABEL: labels})
        chain = LinearChain(
            LABEL,
            [Window([TEXTS, *self.numbers_])],
            self.min_freq,
            self.all_possible_states,
            bias=False,
            all_transitions=self.all_possible_transitions,
        )
        parts = [kind(c) for kind, c in ((L1, self.c1), (L2, self.c2)) if c]
        penalty = PenaltySum(tuple(parts)) if parts else None
        self.crf_ = fit(chain, rows, objective=self.objective, penalty=penalty, progress=False, max_iter=self.max_iterations)
        self.classes_ = list(self.crf_.labels)
        return self

    def predict(self, X: Any) -> list[list[str]]:
        """The best labels of each sequence."""
        check_is_fitted(self)
        found = self.crf_.predict(as_rows(X, self.numbers_)) if any(map(len, X)) else []
        return split(list(found), X)

    def predict_marginals(self, X: Any) -> list[list[dict[str, float]]]:
        """p(label | all else) of each step of each sequence."""
        check_is_fitted(self)
        if not any(map(len, X)):
            return [[] for _ in X]
        probs = self.crf_.predict_proba(as_rows(X, self.numbers_))
        columns = [np.asarray(probs[label]).tolist() for label in self.classes_]
        return split([dict(zip(self.classes_, p, strict=True)) for p in zip(*columns, strict=True)], X)

    def score(self, X: Any, y: Any) -> float:
        """The share of labels that are found."""
        pairs = [(a, str(b)) for own, true in zip(self.predict(X), y, strict=True) for a, b in zip(own, true, strict=True)]
        return sum(a == b for a, b in pairs) / len(pairs)


def numbers_in(X: Any) -> list[str]:
    """The names of the numbers among the attributes of steps."""
    found = {
        name
        for steps in X
        for step in steps
        if isinstance(step, Mapping)
        for name, value in step.items()
        if isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))
    }
    return sorted(found)


def as_rows(X: Any, numbers: Sequence[str], more: Mapping[str, list[str]] | None = None) -> Sequences:
    """Sequences of steps as rows: a list of texts for each, and a column for each number."""
    if empty := sum(not len(steps) for steps in X):
        note(f"{empty:,} of {len(X):,} sequences are empty: there is nothing to label in them")
    steps = [step for own in X for step in own]
    if not steps:
        raise DataError("there are no steps: every sequence is empty")
    ids = [i for i, own in enumerate(X) for _ in own]
    columns = {n: np.array([_number(step, n) for step in steps]) for n in numbers}
    return sequences({SEQUENCE: ids, TEXTS: [_texts(s, numbers) for s in steps], **columns, **(more or {})}, by=SEQUENCE)


def _number(step: Any, name: str) -> float:
    value = step.get(name, 0.0) if isinstance(step, Mapping) else 0.0
    return float(value) if isinstance(value, (int, float, np.number)) else 0.0


def _texts(step: Any, numbers: Sequence[str]) -> list[str]:
    if not isinstance(step, Mapping):
        return [str(x) for x in step]
    flags = [n for n, v in step.items() if isinstance(v, (bool, np.bool_)) and v]
    return [
        *flags,
        *(f"{n}:{v}" for n, v in step.items() if n not in numbers and not isinstance(v, (bool, np.bool_, type(None)))),
    ]


def split(values: list[Any], X: Any) -> list[list[Any]]:
    """Values of steps as one list for each sequence."""
    ends = np.cumsum([len(steps) for steps in X]).tolist()
    return [values[end - len(steps) : end] for end, steps in zip(ends, X, strict=True)]
