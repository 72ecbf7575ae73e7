"""How well labels are predicted: accuracy, precision and recall of each label, and of whole entities (BIO)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.families.protocol.family import frame
from suffice.inference.finite.network import Ints
from suffice.output.display import Tabular

BEGINS, ENDS = ("B-", "S-"), ("E-", "S-")
MARKS = ("B-", "I-", "E-", "S-")
"""How labels of entities begin; those that begin one, and that end one."""

HEADER = ["label", "precision", "recall", "f1", "n"]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Tabular):
    """Counts of labels: `right`, `predicted` and `there` of each; the same of entities by their kind, where labels are BIO.

    >>> found = Evaluation.of(np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([3]), ["N", "V"])
    >>> found.accuracy, found.recall("V")
    (0.6666666666666666, 0.5)
    """

    n_right: int
    n: int
    n_unknown: int
    labels: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    """right, predicted, there × labels."""
    kinds: tuple[str, ...]
    entities: npt.NDArray[np.int64]

    @classmethod
    def of(cls, true: Ints, found: Ints, lengths: Ints, labels: Sequence[str], n_known: int | None = None) -> Evaluation:
        """True labels, −1 where there is none, and those that were found; of the labels the chain knows the first."""
        there = true != -1
        L = len(labels)
        n_unknown = int((true >= (L if n_known is None else n_known)).sum())
        right = there & (true == found)
        parts = (found[right], found[there], true[true >= 0])
        counts = np.array([np.bincount(x, minlength=L) for x in parts])
        kinds, entities = entity_counts(true, found, lengths, labels)
        return cls(int(right.sum()), int(there.sum()), n_unknown, tuple(labels), counts, kinds, entities)

    @property
    def accuracy(self) -> float:
        """The share of steps with a label whose label is found."""
        return self.n_right / self.n if self.n else float("nan")

    def precision(self, label: str) -> float:
        """The share of steps that are said to have a label and have it."""
        return self._rates(self.counts, self.labels.index(label))[0]

    def recall(self, label: str) -> float:
        """The share of steps with a label that are said to have it."""
        return self._rates(self.counts, self.labels.index(label))[1]

    @property
    def entity_f1(self) -> float:
        """F1 of entities of all kinds: those with the right first and last step and kind. NaN if labels are not BIO."""
        return self._rates(self.entities.sum(axis=1, keepdims=True), 0)[2] if self.kinds else float("nan")

    @staticmethod
    def _rates(counts: npt.NDArray[np.int64], i: int) -> tuple[float, float, float]:
        right, predicted, there = counts[:, i].tolist()
        precision = right / predicted if predicted else float("nan")
        recall = right / there if there else float("nan")
        return precision, recall, 2 * right / (predicted + there) if predicted + there else float("nan")

    def to_frame(self) -> Any:
        """One row for each label, then for each kind of entity."""
        rows = self._rows()
        return frame({name: [row[i] for row in rows] for i, name in enumerate(HEADER)})

    def _rows(self) -> list[list[object]]:
        own: list[list[object]] = [[x, *self._rates(self.counts, i), int(self.counts[2, i])] for i, x in enumerate(self.labels)]
        return own + [[f"entity {k}", *self._rates(self.entities, i), int(self.entities[2, i])] for i, k in enumerate(self.kinds)]

    def _headline(self) -> str:
        whole = f"; F1 of entities {self.entity_f1:.4f}" if self.kinds else ""
        strange = f"; {self.n_unknown:,} have a label that the chain does not know" if self.n_unknown else ""
        return f"Evaluation: {self.n_right:,} of {self.n:,} labels are right ({self.accuracy:.2%}){whole}{strange}"

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Any]], str]:
        rows = self._rows()
        return [(HEADER, rows[:limit])], f"\nand {len(rows) - limit} more" if len(rows) > limit else ""


def entity_counts(true: Ints, found: Ints, lengths: Ints, labels: Sequence[str]) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Entities that are right, found, and there (rows), by kind; no kinds if labels are not B-…, I-… and O, or with E-… and S-….

    What is found where the true label is missing does not count.
    """
    marked = [x for x in labels if x[:2] in MARKS]
    if not any(x[:2] in BEGINS for x in marked) or any(x != "O" and x[:2] not in MARKS for x in labels):
        return (), np.zeros((3, 0), np.int64)
    kinds = tuple(sorted({x[2:] for x in marked}))
    starts = np.repeat(np.arange(len(lengths)), lengths)
    there, told = (entities(x, starts, labels) for x in (true, np.where(true == -1, -1, found)))
    parts = [[x for _, _, x in some] for some in (there & told, told, there)]
    return kinds, np.array([[part.count(k) for k in kinds] for part in parts], np.int64)


def entities(codes: Ints, sequence: Ints, labels: Sequence[str]) -> set[tuple[int, int, str]]:
    """First step, last step and kind of each entity; I- or E- that follows nothing of its kind begins one, as in conlleval."""
    result: set[tuple[int, int, str]] = set()
    begin, kind, last, before = -1, "", -1, "O"
    for i, (code, own) in enumerate(zip(codes.tolist(), sequence.tolist(), strict=True)):
        label = labels[code] if code >= 0 else "O"
        goes_on = label in (f"I-{kind}", f"E-{kind}") and begin >= 0 and own == last and before[:2] not in ENDS
        if begin >= 0 and not goes_on:
            result.add((begin, i - 1, kind))
            begin, kind = -1, ""
        if label != "O" and not goes_on:
            begin, kind = i, label[2:]
        last, before = own, label
    if begin >= 0:
        result.add((begin, len(codes) - 1, kind))
    return result
