"""Linear chains by enumeration: every labelling of a short sequence."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np

from suffice.models.linear_chain.encoding import EncodedBlock, encoded
from suffice.models.linear_chain.features import step_scores
from suffice.models.linear_chain.reading import LabelReading


def scores_of(crf: Any, sequences: Any) -> list[np.ndarray]:
    """The score of each label at each step, by sequence."""
    reading = LabelReading.of(crf._model, sequences)
    result = []
    for block in reading.map(lambda b: b, ""):
        own: EncodedBlock = encoded(block, reading.tables)
        rows = np.empty((own.n_steps, len(crf.labels)))
        rows[own.layout.order] = step_scores(crf.features, crf.weight_vector, own)
        result += np.split(rows, np.cumsum(block.lengths)[:-1])
    return result


def enumerated(scores: np.ndarray, T: np.ndarray) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """All labellings of a sequence, and the score of each."""
    n, L = scores.shape
    paths = list(product(range(L), repeat=n))
    values = [sum(scores[t, y] for t, y in enumerate(p)) + sum(T[a, b] for a, b in pairwise(p)) for p in paths]
    return paths, np.array(values)
