"""Merge: the sum of many files of statistics, one at a time, so that memory is that of the sum and of one file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from os import PathLike, fspath

import numpy as np

from suffice.basis.arrays import Array
from suffice.errors import SufficeError
from suffice.statistics.file import Contents, StatisticsParts, reading
from suffice.statistics.statistics import Statistics, checked_decay


def merge_files(paths: Iterable[str | PathLike[str]], decay: float = 1.0) -> Statistics:
    """The sum of the statistics in some files; before each is added, those before it keep `decay` of their weight. Dense tables
    of the same layout add as flat arrays. Whatever differs is added by name, which takes some ten times as long. A file that is
    damaged, or does not add to those before it, is named."""
    total, share = None, checked_decay(decay)  # type: _FlatSum | None, float
    for path in paths:
        here = Contents.read(path)
        with reading(path):
            if total is not None and total.takes(here):
                total.add(here, share)
                continue
            part = Statistics(*here.parts())
        if total is not None:
            try:
                before = Statistics(*total.contents.parts()).decay(share)
                part = before.plus(part, ("the sum of the files before it", fspath(path)))
            except SufficeError as error:
                raise SufficeError(f"{fspath(path)} does not add to the files before it: {error}") from None
        total = _FlatSum(Contents.of(StatisticsParts(tuple(part), part.weight, part.variables.values(), part.suppression)))
    if total is None:
        raise SufficeError("there are no files to add")
    return Statistics(*total.contents.parts())


class _FlatSum:
    """A sum of files of one layout, as their flat numbers."""

    def __init__(self, first: Contents) -> None:
        entries, states = first.layout["entries"], {d["name"]: len(d.get("states", ())) for d in first.layout["variables"]}
        self.contents = first
        self.dense = bool(entries) and not any(e["real"] or e["sparse"] for e in entries)
        self.cells = np.array([prod(states[n] for n in e["finite"]) for e in entries] if self.dense else [], np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.cells)[:-1]]).astype(np.int64)

    def takes(self, other: Contents) -> bool:
        """Whether a file has tables of the same layout, whose numbers are possible; if not, that is said elsewhere."""
        same = self.dense and other.layout == self.contents.layout and other.numbers.shape == (int(self.cells.sum()),)
        if not same or len(other.keys) or not np.isfinite(other.weight) or other.numbers.min(initial=0.0) < 0:
            return False
        lost = self._lost_digits(other)
        lacking = other.weight - np.add.reduceat(other.numbers, self.starts)
        beyond = np.maximum(lost[:, 2] - lacking, lacking - lost[:, 3])
        possible = (beyond <= 1e-6 * other.weight) & (lost >= 0).all(1) & (lost[:, ::2] <= lost[:, 1::2]).all(1)
        return bool(possible.all())

    def _lost_digits(self, contents: Contents) -> Array:
        none = np.zeros((len(self.cells), 4))
        return none if contents.lost is None else np.asarray(contents.lost, float).reshape(none.shape)

    def add(self, other: Contents, decay: float) -> None:
        mine, lost = self.contents, None
        if mine.lost is not None:
            a, b = self._lost_digits(mine), self._lost_digits(other)
            cells = np.maximum(a[:, 0], b[:, 0]), np.minimum(a[:, 1] + b[:, 1], self.cells)
            weight = decay * a[:, 2:] + b[:, 2:]
            lost = [[int(least), int(most), *w] for least, most, w in zip(*cells, weight.tolist(), strict=True)]
        numbers, total = decay * mine.numbers + other.numbers, decay * mine.weight + other.weight
        self.contents = replace(mine, numbers=numbers, weight=total, lost=lost)
