"""Sequences whose hidden states are real and move linearly, with Gaussian noise: what filters and smoothers take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import ModelError


class StepPattern(NamedTuple):
    """Sequences that begin alike and whose steps from `head` on are all alike: their numbers, the longest first, and the first
    step of the longest."""

    sequences: Ints
    first: int
    head: int


def patterns(starts: Ints, codes: Ints, missing: npt.NDArray[np.bool_]) -> list[StepPattern]:
    """All sequences, steps[starts[s]:starts[s + 1]] those of s, by their patterns: steps of one code whose same cells are missing
    are alike."""
    keys, lengths = _keys(codes, missing), np.diff(starts)
    change = np.zeros(len(keys), np.int64)
    within = np.arange(len(keys)) - np.repeat(starts[:-1], lengths)
    change[1:] = np.where(keys[1:] != keys[:-1], within[1:], 0)
    heads = np.maximum.reduceat(change, starts[:-1]) if len(lengths) else change
    alike: dict[bytes, list[int]] = {}
    for s, (start, head) in enumerate(zip(starts.tolist(), heads.tolist(), strict=False)):
        alike.setdefault(keys[start : start + head + 1].tobytes(), []).append(s)
    found = []
    for members in alike.values():
        ordered = np.array(members)[np.argsort(-lengths[members], kind="stable")]
        found.append(StepPattern(ordered, int(starts[ordered[0]]), int(heads[ordered[0]])))
    return found


def _keys(keys: Ints, missing: npt.NDArray[np.bool_]) -> Ints:
    """Numbers that are equal where codes and missing cells of two steps are."""
    if not missing.any():
        return keys
    cells = np.packbits(missing, axis=1)
    words = np.zeros((len(cells), -(-cells.shape[1] // 8) * 8), np.uint8)
    words[:, : cells.shape[1]] = cells
    for word in words.view(np.int64).T:
        distinct, number = np.unique(word, return_inverse=True)
        keys = np.unique(keys * len(distinct) + number, return_inverse=True)[1]
    return keys


Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer[Any]]

_TYPES: dict[str, Any] = {"starts": np.int64, "codes": np.int32, "output_codes": np.int32, "diffuse": np.bool_}

VAGUE, KEPT = 1e4, 100.0
"""A first state whose variance is VAGUE times that of the noise is started like one without prior, to keep digits; KEPT times
the noise is left of it."""


class Beginnings(NamedTuple):
    """Numbers β that states start from apart from Q, each a multiple of a vector that comes in with a code: what is left of Q,
    [codes, m, m], the vectors, [codes, d, m], and the precision of β, [d]: 1 for a standard normal prior, 0 for none."""

    Q: Array
    entries: Array
    precision: Array


def beginnings(steps: LinearSteps) -> Beginnings:
    """All vectors of steps: units where a coordinate has no prior, and roots of a vague prior. What is left has some variance:
    flat is flat, and exact outputs then have a variance as well."""
    Q, m, diffuse = steps.Q.copy(), steps.m, steps.diffuse
    Q[diffuse[:, :, None] | diffuse[:, None]] = 0.0
    first, size = ~steps.F.any(axis=(1, 2)), np.diagonal(Q, axis1=1, axis2=2)
    noise = max(steps.R.max(initial=0.0), size[~first].max(initial=0.0)) or 1.0
    vectors = []
    for code in np.flatnonzero(first & (size.max(axis=1, initial=0.0) > VAGUE * noise)):
        if steps.comes_once(int(code)):
            kept = KEPT * noise / size[code].max()
            values, directions = np.linalg.eigh(Q[code])
            roots = directions.T * np.sqrt((1.0 - kept) * values.clip(0.0))[:, None]
            vectors += [(code, root, 1.0) for root in roots[values > 0.0]]
            Q[code] *= kept
    for code, i in np.argwhere(diffuse):
        Q[code, i, i] = KEPT * noise
        vectors.append((code, np.eye(m)[i], 0.0))
    entries = np.zeros((len(Q), len(vectors), m))
    for q, (code, vector, _) in enumerate(vectors):
        entries[code, q] = vector
    return Beginnings(Q, entries, np.array([x[2] for x in vectors], np.float64))


@dataclass(frozen=True, eq=False)
class LinearSteps:
    """Sequences end to end, steps[starts[s]:starts[s + 1]] those of s, with linear transitions and outputs.

        z[t] = F z[t-1] + f + w,  w ~ Normal(0, Q)          F, Q, f by the code of the step
        y[t, j] = h z[t] + e,     e ~ Normal(0, R)          h, R by the output code of the step; NaN is missing

    The state before the first step is 0: f and Q of a first step's code are the mean and covariance of the first state.

    >>> F, Q, f = [[[0.0]], [[1.0]]], [[[100.0]], [[1.0]]], [[5.0], [0.0]]
    >>> steps = LinearSteps([0, 3], [0, 1, 1], F, Q, f, [[5.0], [np.nan], [6.0]], [[[1.0]]], [[2.0]])
    >>> steps.m, steps.lengths
    (1, array([3]))
    """

    starts: Ints
    """[sequences + 1]; no sequence is empty."""
    codes: Ints
    """Which transition leads to a step: [steps]."""
    F: Array
    """[codes, m, m]."""
    Q: Array
    """[codes, m, m]; may be singular."""
    f: Array
    """[codes, m]."""
    y: Array
    """[steps, p]; NaN where missing."""
    H: Array
    """[output codes, p, m]."""
    R: Array
    """[output codes, p]; 0 where an output is exact."""
    f_steps: Array = None  # type: ignore[assignment]
    """Added to f, step by step: [steps, m]."""
    output_codes: Ints = None  # type: ignore[assignment]
    """Which outputs a step has: [steps]; all 0 if there are none."""
    diffuse: npt.NDArray[np.bool_] = None  # type: ignore[assignment]
    """Coordinates that start without any prior at a step of the code: [codes, m]. Such a code comes once in a sequence."""

    def __post_init__(self) -> None:
        empty = {"output_codes": len(self.codes), "f_steps": (0, np.shape(self.f)[1]), "diffuse": np.shape(self.f)}
        for name in self.__dataclass_fields__:
            value, kind = getattr(self, name), _TYPES.get(name, np.float64)
            value = np.zeros(empty[name], kind) if value is None else value
            if not (isinstance(value, np.ndarray) and value.dtype == kind and value.flags.carray):
                object.__setattr__(self, name, np.require(value, kind, ["C", "W"]))
            elif value is not getattr(self, name):
                object.__setattr__(self, name, value)
        for code in np.flatnonzero(self.diffuse.any(axis=1)) if self.diffuse.any() else ():
            if not self.comes_once(int(code)):
                raise ModelError(f"code {code} starts coordinates without prior, so a sequence may have it at one step only")

    @property
    def m(self) -> int:
        return int(self.f.shape[1])

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)

    @property
    def sequence(self) -> Ints:
        return np.repeat(np.arange(len(self.starts) - 1), self.lengths)

    @cached_property
    def begin(self) -> Beginnings:
        """Where the values come from that sequences start from."""
        return beginnings(self)

    @cached_property
    def model(self) -> tuple[Any, ...]:
        """What kernels take, where each Q is followed by zeros."""
        Q = np.stack([self.begin.Q, np.zeros_like(self.Q)], axis=1).reshape(-1, self.m, self.m)
        return self.codes, self.F, Q, self.f, self.f_steps, self.begin.entries, self.output_codes, self.H, self.R, self.y

    def comes_once(self, code: int) -> bool:
        """Whether no sequence has two steps of a code."""
        return bool(np.bincount(self.sequence[self.codes == code], minlength=1).max() <= 1)

    @cached_property
    def patterns(self) -> list[StepPattern]:
        """Sequences with the same covariances together."""
        codes = self.codes.astype(np.int64) * len(self.H) + self.output_codes
        return patterns(self.starts, codes, np.isnan(self.y))

    def like(self, pattern: StepPattern, lengths: Ints) -> LinearSteps:
        """Sequences of a pattern, as long as asked for, whose outputs are 0 where they are not missing, and means 0."""
        starts = np.concatenate([[0], np.cumsum(lengths)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
        at = pattern.first + np.minimum(within, pattern.head)
        y = np.where(np.isnan(self.y[at]), np.nan, 0.0)
        codes, output_codes, f = self.codes[at], self.output_codes[at], np.zeros_like(self.f)
        rows = {"starts": starts, "codes": codes, "output_codes": output_codes, "y": y}
        like = replace(self, **rows, f=f, f_steps=self.f_steps[:0])
        like.__dict__["begin"] = self.begin
        return like

    def repeat(self, n: int) -> LinearSteps:
        starts = np.concatenate([[0], np.tile(self.lengths, n).cumsum()])
        rows = {name: np.tile(getattr(self, name), n) for name in ("codes", "output_codes")}
        rows |= {name: np.tile(getattr(self, name), (n, 1)) for name in ("f_steps", "y")}
        return replace(self, starts=starts, **rows)
