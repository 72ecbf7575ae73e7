"""Sequences whose hidden states are real and move linearly, with Gaussian noise; and the filter and smoother of them one after
the other, in blocks of steps, whatever their codes and missing cells are.

Coordinates without prior have flat densities of the values β that they start from, given all outputs. Filter and smoother run as
if β were 0, with one more column of means for each of its numbers, which has outputs 0 and starts at 1: with the innovations'
columns v₀, V and their variances the outputs have the density

    p(y | β) ∝ exp -½ Σ (v₀ + V β)² / variance,    J = Σ Vᵀ V / variance,    s = Σ Vᵀ v₀ / variance

so that β has mean -J⁻¹ s and covariance J⁻¹, and states follow by their columns. A prior of variance κ → ∞ gives the limit of
log p(y) + ½ rank(J) log κ (de Jong 1991, Annals of Statistics 19, p. 1073).
"""

from __future__ import annotations

from collections.abc import Iterator
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


@dataclass(frozen=True, eq=False)
class LinearSteps:
    """Sequences end to end, steps[starts[s]:starts[s + 1]] those of s, with linear transitions and outputs.

        z[t] = F z[t-1] + f + w,  w ~ Normal(0, Q)          F, Q, f by the code of the step
        y[t, j] = h z[t] + e,     e ~ Normal(0, R)          h, R by the output code of the step; NaN is missing

    The state before the first step is 0: f and Q of a first step's code are the mean and covariance of the first state."""

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
        """Where the values come from that sequences start from: units where a coordinate has no prior, and roots of a vague
        prior. What is left has some variance: flat is flat, and exact outputs then have a variance as well."""
        Q, m, diffuse = self.Q.copy(), self.m, self.diffuse
        Q[diffuse[:, :, None] | diffuse[:, None]] = 0.0
        first, size = ~self.F.any(axis=(1, 2)), np.diagonal(Q, axis1=1, axis2=2)
        noise = max(self.R.max(initial=0.0), size[~first].max(initial=0.0)) or 1.0
        vectors = []
        for code in np.flatnonzero(first & (size.max(axis=1, initial=0.0) > VAGUE * noise)):
            if self.comes_once(int(code)):
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
        """All sequences by their patterns, those with the same covariances together: steps of one code whose same cells are
        missing are alike."""
        codes, starts, lengths = self.codes.astype(np.int64) * len(self.H) + self.output_codes, self.starts, self.lengths
        keys = _keys(codes, np.isnan(self.y))
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


LOG_2PI = float(np.log(2.0 * np.pi))

BLOCK = 4096
"""Steps are kept in blocks of about this many. Longer sequences are filtered twice, the second time block by block."""


class Innovations(NamedTuple):
    """What the filter adds up over the steps of each sequence: `sums` of the products of the innovations' columns by their
    variances, [sequences, 1 + d, 1 + d]; and `logs`, [sequences, 4]: the sum of the logarithms of variances, a product whose
    logarithm is to be added, how many variances, the first step that is impossible or -1."""

    sums: Array
    logs: Array

    def log_likelihoods(self) -> Array:
        """ln p(y) of each sequence, for β = 0; -inf where it is impossible."""
        sums, logs, n, impossible = self.sums[:, 0, 0], self.logs[:, 0] + np.log(self.logs[:, 1]), *self.logs[:, 2:].T
        return np.where(impossible < 0, -0.5 * (sums + logs + n * LOG_2PI), -np.inf)


class Wanted(NamedTuple):
    """What the smoother fills: means by columns, [1 + d, steps, m], covariances [steps, m, m], `lagged` Cov[z[t], z[t-1] | y],
    [steps, m, m], and sums [groups, 2 m, 2 m], by the group of each step and the weight of each sequence. Covariances, lagged and
    sums have length 0 where they are not wanted."""

    means: Array
    covariances: Array
    lagged: Array
    sums: Array
    groups: Ints
    weights: Array

    @classmethod
    def of(cls, steps: LinearSteps, *, lagged: bool) -> Wanted:
        """Means and covariances of all steps, and no sums."""
        m, n, columns = steps.m, len(steps.codes), 1 + len(steps.begin.precision)
        sums = np.empty((0, 2 * m, 2 * m)), np.empty(0, np.int32), np.ones(len(steps.starts) - 1)
        return cls(np.zeros((columns, n, m)), np.empty((n, m, m)), np.zeros((n if lagged else 0, m, m)), *sums)


def states_before(steps: LinearSteps, n: int) -> tuple[Array, ...]:
    """Before the first step: a or r by columns, three matrices, sums of innovations."""
    m, columns = steps.m, 1 + len(steps.begin.precision)
    return np.zeros((n, columns, m)), np.zeros((n, m, m)), np.zeros((n, m, m)), np.zeros((n, columns, columns))


def filter_all(steps: LinearSteps, states: tuple[Array, ...], means: Array, covariances: Array, products: Array) -> Innovations:
    """Filter all sequences from the states before them, which move on. Filled are the means' columns, covariances, and if there
    is room the products of innovations, step by step."""
    from suffice.numerics.kernels.chains.kalman import forward

    logs = no_logs(len(steps.starts) - 1)
    work, room = np.zeros((3, steps.m, steps.m)), _room(steps, min(len(steps.codes), 2 * BLOCK))
    for batch in _batches(steps.lengths):
        part = tuple(x[batch] for x in states)
        for pieces in _pieces(steps.starts[:-1][batch], steps.starts[1:][batch]):
            forward(steps.model, pieces, part, logs[batch], work, room)
            low, high = pieces[0, 0], pieces[-1, 1]
            means[:, low:high] = room[0][: high - low].swapaxes(0, 1)
            covariances[low:high] = room[1][: high - low]
            if len(products):
                v, variances = room[4][: high - low], room[5][: high - low]
                scale = np.where(variances > 0.0, 1.0 / np.where(variances > 0.0, variances, 1.0), 0.0)
                v = np.where(variances[:, :, None] > 0.0, v, 0.0)
                products[low:high] = np.einsum("tjq,tjk,tj->tqk", v, v, scale)
    return Innovations(states[3], logs)


def filter_room(steps: LinearSteps) -> tuple[Any, ...]:
    """What the filter keeps of one sequence: means, covariances after and before outputs, gains, innovations, variances."""
    from suffice.numerics.kernels.chains.kalman import forward

    room, pieces = _room(steps, len(steps.codes)), np.array([[0, len(steps.codes)] * 2])
    forward(steps.model, pieces, states_before(steps, 1), no_logs(1), np.zeros((3, steps.m, steps.m)), room)
    return room


def smooth_some(steps: LinearSteps, which: Ints, wanted: Wanted, found: Innovations) -> None:
    """Smooth some sequences, for β = 0: fill what is wanted, and what their innovations add up to."""
    from suffice.numerics.kernels.chains.kalman import backward, forward

    low, high = steps.starts[which], steps.starts[which + 1]
    states, logs, weights = states_before(steps, len(which)), no_logs(len(which)), wanted.weights[which]
    room = _room(steps, min(int((high - low).sum()), 2 * BLOCK))
    work, transposed = np.zeros((5, steps.m, steps.m)), steps.F.swapaxes(1, 2).copy()
    for batch in _batches(high - low):
        part, before = tuple(x[batch] for x in states), []
        back = states_before(steps, len(part[0]))[:3]
        for pieces in _pieces(low[batch], high[batch]):
            before.append((pieces, tuple(x.copy() for x in part)))
            forward(steps.model, pieces, part, logs[batch], work, room)
        back = (*back, back[1].copy())
        for again, (pieces, state) in enumerate(reversed(before)):
            if again:
                forward(steps.model, pieces, state, no_logs(1), work, room)
            backward(steps.model, transposed, pieces, back, work, room, (*wanted[:5], weights[batch]))
    found.sums[which], found.logs[which] = states[3], logs


def no_innovations(steps: LinearSteps) -> Innovations:
    """What the innovations of all sequences add up to before the first step."""
    n = len(steps.starts) - 1
    return Innovations(states_before(steps, n)[3], no_logs(n))


def no_logs(n: int) -> Array:
    """`Innovations.logs` before the first step."""
    return np.tile([0.0, 1.0, 0.0, -1.0], (n, 1))


def _batches(lengths: Ints) -> Iterator[slice]:
    """Sequences to be kept at once: some short ones, or a long one alone."""
    if not len(lengths):
        return
    end = lengths.cumsum()
    alone = np.where(lengths > BLOCK, np.arange(len(lengths)), -1)
    new = (np.diff((end - lengths) // BLOCK) > 0) | (alone[1:] != alone[:-1])
    bounds = np.concatenate([[0], 1 + np.flatnonzero(new), [len(lengths)]]).tolist()
    yield from map(slice, bounds[:-1], bounds[1:])


def _pieces(low: Ints, high: Ints) -> Iterator[Ints]:
    """The sequences of a batch as kernels take them, a long one in blocks."""
    if len(low) > 1 or high[0] - low[0] <= BLOCK:
        yield np.stack([low, high, low, high], axis=1)
        return
    for t in range(low[0], high[0], BLOCK):
        yield np.array([[t, min(t + BLOCK, high[0]), low[0], high[0]]])


def _room(steps: LinearSteps, n: int) -> tuple[Any, ...]:
    """Room for what the smoother keeps of a batch."""
    m, p, columns = steps.m, steps.y.shape[1], 1 + len(steps.begin.precision)
    shapes = ((n, columns, m), (n, m, m), (n, m, m), (n, p, m), (n, p, columns), (n, p))
    return tuple(np.empty(shape) for shape in shapes)


NOTHING = 1e-10
"""A direction whose information is a smaller share than this is not told by the outputs."""


class FlatStart(NamedTuple):
    """p(β | y) for each of several sums J, s: means [sums, d]; covariances [sums, d, d], as if directions that outputs say
    nothing of were known; these directions as columns, [sums, d, d], other columns 0; and what is to be added to log p(y | β =
    0)."""

    mean: Array
    covariance: Array
    free: Array
    log_likelihood: Array


def flat_start(sums: Array, precision: Array) -> FlatStart:
    """p(β | y) by the sums of the products of v₀, V: [sums, 1 + d, 1 + d], and the precision of β's prior: 1, or 0 if flat."""
    J, s = sums[:, 1:, 1:] + np.diag(precision), sums[:, 1:, 0]
    size = np.diagonal(J, axis1=1, axis2=2)
    seen = size > NOTHING**2 * size.max(axis=1, keepdims=True, initial=0.0)
    root = np.sqrt(np.where(seen, size, 1.0))
    scaled = J / (root[:, :, None] * root[:, None])  # so that units do not decide what is small
    values, vectors = np.linalg.eigh(np.where(seen[:, :, None] & seen[:, None], scaled, 0.0))
    told = values > NOTHING
    vectors = vectors / root[:, :, None]
    covariance = (vectors * np.where(told, 1.0 / np.where(told, values, 1.0), 0.0)[:, None]) @ vectors.swapaxes(1, 2)
    mean = -(covariance @ s[:, :, None])[:, :, 0]
    log_det = np.where(told.all(axis=1), np.log(np.where(told, values, 1.0)).sum(axis=1) + 2.0 * np.log(root).sum(axis=1), 0.0)
    partly = ~told.all(axis=1)
    if partly.any():  # the eigenvalues that do not vanish are those of J itself
        n_told, plain = told[partly].sum(axis=1), np.linalg.eigvalsh(J[partly])
        kept = np.arange(plain.shape[1]) >= plain.shape[1] - n_told[:, None]
        log_det[partly] = np.log(np.where(kept, plain, 1.0)).sum(axis=1)
    return FlatStart(mean, covariance, np.where(told[:, None], 0.0, vectors), -0.5 * (log_det + (s * mean).sum(axis=1)))


def spread_infinite(covariances: Array, columns: Array, free: Array) -> None:
    """Make variances infinite where directions that outputs say nothing of matter: `columns` are [steps, d, m]."""
    loose = columns.swapaxes(1, 2) @ free
    size = np.abs(loose).max(axis=2, initial=0.0)
    lost = size > NOTHING * np.abs(columns).max(axis=(1, 2), initial=0.0)[:, None]
    together = np.where(lost[:, :, None] & lost[:, None], loose @ loose.swapaxes(1, 2), 0.0)
    here = np.abs(together) > NOTHING * size[:, :, None] * size[:, None]
    covariances[here] = np.copysign(np.inf, together[here])
