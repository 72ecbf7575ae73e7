"""Linear chains by enumeration: every labelling of a short sequence."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np

from suffice.models.linear_chain.encoding import EncodedBlock, encode_block
from suffice.models.linear_chain.features import step_scores
from suffice.models.linear_chain.reading import LabelReading


def scores_of(crf: Any, sequences: Any) -> list[np.ndarray]:
    """The score of each label at each step, by sequence."""
    reading = LabelReading.of(crf._model, sequences)
    result = []
    for block in reading.map(lambda b: b, ""):
        own: EncodedBlock = encode_block(block, reading.tables)
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


def by_name(
    crf: Any, columns: dict[str, Any], lengths: list[int], allowed: Any = None
) -> list[tuple[list[tuple[int, ...]], Any]]:
    """All labellings of each sequence and their scores, −inf for those that are forbidden: from the frame of weights alone, with
    columns of texts and numbers at the step itself. `allowed(before, label)` says what may follow, None for the ends."""
    frame, name = crf.weights, crf.label
    weights = {(a, b): w for a, b, w in zip(frame["attribute"], frame["label"], frame["weight"], strict=True)}
    result, start = [], 0
    for n in lengths:
        steps = [{c: columns[c][start + t] for c in columns} for t in range(n)]
        paths = list(product(range(len(crf.labels)), repeat=n))
        values = [_score([crf.labels[y] for y in path], steps, weights, name, allowed) for path in paths]
        result.append((paths, np.array(values)))
        start += n
    return result


def _score(labels: list[str], steps: list[dict[str, Any]], weights: dict[Any, float], name: str, allowed: Any) -> float:
    total = 0.0
    if allowed is not None and not all(allowed(a, b) for a, b in pairwise([None, *labels, None])):
        return -np.inf
    for t, label in enumerate(labels):
        cells = [("bias", 1.0)] + [(f"{c}={x}", 1.0) if isinstance(x, str) else (c, float(x)) for c, x in steps[t].items()]
        around = [f"{name}[-1]={labels[t - 1]}"] if t else []
        total += sum(x * weights.get((a, label), 0.0) for a, x in cells)
        for before in around:
            total += weights.get((before, label), 0.0)
            total += sum(x * weights.get((f"{a}, {before}", label), 0.0) for a, x in cells)
            if t > 1:
                total += weights.get((f"{name}[-2]={labels[t - 2]}, {before}", label), 0.0)
    return total
