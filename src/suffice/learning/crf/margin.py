"""Principles that hold the right labels against the best ones, one sequence after the other: margins and the perceptron.

Margins: minimise c2 Σ w² + Σ_q H_q(w), H_q = max_y (cost(y_q, y) + score(y)) − score(y_q), by cutting planes.

Each sequence has a mixture of labellings that were found to violate, which begins with the right one, and 2 c2 w = Σ_q (right
labels − mixture). A pass finds the labels that violate most under w of all sequences, which gives the objective; then mixtures of
all labellings found so far are changed, block by block, until the dual hardly gains (multi-plane block-coordinate Frank–Wolfe;
Shah, Kolmogorov & Lampert 2015, CVPR, p. 2737; pairwise steps: Osokin et al. 2016, ICML 33, p. 593):

    dual = Σ_q cost(mixture) − c2 Σ w²,    gap = objective − dual

A plane is what the right labels of a sequence have of each weight and a labelling that violates has not, mostly little: see
`suffice.numerics.kernels.labels.crf`. So a pass over planes costs a part of one that finds labels.

The averaged perceptron changes the weights after each sequence, where labels are mistaken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.iteration import OutOfTime, Progress
from suffice.errors import note
from suffice.learning.crf.problem import Climbing, LabelProblem
from suffice.models.crf import WeightRun, WeightStep
from suffice.models.linear_chain.encoding import Codes, Encoded, EncodedBlock
from suffice.models.linear_chain.features import PairFeatures, most_probable
from suffice.models.linear_chain.wider_features import InSequence
from suffice.objectives.principles import Perceptron

SLOTS, MOST_SLOTS = 10, 40
"""Planes that are kept of a sequence: more if all of so many are in its mixture, but no more than this."""
STEPS, PASSES, ENOUGH = 10, 50, 0.3
"""How often shares of a sequence are moved in a pass over planes; passes before labels are found anew, or fewer if what is still
to be gained by planes is this share of the gap."""


class FoundPlanes(NamedTuple):
    """The planes of the sequences of a block, in the order of its layout: where the entries of each end, and what each costs."""

    ends: Ints
    items: Codes
    values: Array
    costs: Array


def planes_of(features: PairFeatures, pair: Ints, block: EncodedBlock, found: Codes, cost: float) -> FoundPlanes:
    """The planes of the labels that were found at the places of a block; `pair` are the weights of `pair_weights`."""
    from suffice.numerics.kernels.labels.crf import write_planes

    ranks = block.layout.ranks
    places, sizes = np.argsort(ranks, kind="stable"), np.bincount(ranks, minlength=len(block.layout.sequences))
    bounds, wrong = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), found != block.labels
    numbers = np.array(features.numbers, np.int64)
    most = 2 * int(block.attributes.sizes[block.groups[:, wrong]].sum()) + (4 + 2 * len(numbers)) * int(wrong.sum())
    ends, items, values = np.zeros(len(bounds), np.int64), np.empty(most, np.int32), np.empty(most)
    given = (block.groups, *block.attributes, features.first, features.labels, block.numbers, numbers, pair)
    write_planes(bounds, places, *given, block.labels, found, ends, items, values)
    costs = np.asarray(cost * np.bincount(ranks, wrong, len(sizes)), np.float64)
    return FoundPlanes(ends, items[: ends[-1]], values[: ends[-1]], costs)


class Planes:
    """Mixtures of planes, and the weights w = Σ weight of sequence · share · plane / (2 c2) that they make."""

    def __init__(self, n_weights: int, sequence_weights: Array, c2: float) -> None:
        n = len(sequence_weights)
        self.w, self.c2, self.sequence_weights, self._room = np.zeros(n_weights), c2, sequence_weights, np.zeros(n_weights)
        self._starts, self._items, self._values = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0)
        self._slots, self._costs, self._shares = np.full((n, SLOTS), -1, np.int64), np.zeros((n, SLOTS)), np.zeros((n, SLOTS))
        self._gram = np.zeros((n, SLOTS, SLOTS))
        self._rng = np.random.default_rng(0)

    @property
    def cost(self) -> float:
        """What the mixtures cost."""
        return float(self.sequence_weights @ (self._shares * self._costs).sum(axis=1))

    def add(self, found: list[FoundPlanes]) -> None:
        """One more plane of each sequence whose labels are not right, in place of one that has no share."""
        from suffice.numerics.kernels.labels.crf import fill_gram

        costs = np.concatenate([f.costs for f in found])
        which = np.flatnonzero(costs > 0.0)
        if (self._shares[which] > 0.0).all(axis=1).any():  # more slots for every sequence
            more = min(SLOTS // 2, MOST_SLOTS - self._slots.shape[1])
            self._slots = np.pad(self._slots, [(0, 0), (0, more)], constant_values=-1)
            self._costs, self._shares = (np.pad(x, [(0, 0), (0, more)]) for x in (self._costs, self._shares))
            self._gram = np.pad(self._gram, [(0, 0), (0, more), (0, more)])
        value = np.where(self._slots[which] < 0, -1.0, self._shares[which])
        at = value.argmin(axis=1)
        free = value[np.arange(len(which)), at] <= 0.0
        which, at = which[free], at[free]
        sizes = np.concatenate([np.diff(f.ends) for f in found])
        self._slots[which, at], self._costs[which, at] = len(self._starts) - 1 + which, costs[which]
        self._starts = np.concatenate([self._starts, self._starts[-1] + np.cumsum(sizes)])
        self._items = np.concatenate([self._items, *(f.items for f in found)])
        self._values = np.concatenate([self._values, *(f.values for f in found)])
        # without the planes that are in no slot
        sizes, there = np.diff(self._starts), self._slots >= 0
        used = np.zeros(len(sizes), bool)
        used[self._slots[there]] = True
        kept = np.repeat(used, sizes)
        self._items, self._values = self._items[kept], self._values[kept]
        self._starts = np.concatenate([[0], np.cumsum(sizes[used])]).astype(np.int64)
        self._slots[there] = (np.cumsum(used) - 1)[self._slots[there]]
        fill_gram(which, at, self._starts, self._items, self._values, self._slots, self._gram, self._room)

    def climb(self, gap: float) -> None:
        """Raise the dual by passes over planes, each in an order of its own, until little is to be gained."""
        from suffice.numerics.kernels.labels.crf import climb

        given = (STEPS, self.c2, self.sequence_weights, self._starts, self._items, self._values)
        mixtures = (self._slots, self._costs, self._shares, self._gram, self.w)
        for _ in range(PASSES):
            if climb(self._rng.permutation(len(self._slots)), *given, *mixtures) <= ENOUGH * gap:
                break


def sequence_weights(block: EncodedBlock) -> Array:
    """The weight of each sequence, that of its first step, in the order of the layout."""
    if block.weights is None:
        return np.ones(len(block.layout.sequences))
    parts = [block.weights[part.begin : part.begin + int(part.offsets[1])] for part in block.layout.parts]
    return np.concatenate([np.zeros(0), *parts])


def descend(problem: LabelProblem, how: Climbing, cost: float) -> tuple[Array, WeightRun]:
    """The weights with the smallest objective that was seen, and the trace of passes, whose bound is the gap."""
    watch: Progress[Array] = how.budget.watch("fitting margins")
    features, pair = problem.features, pair_weights(problem.features)
    planes = Planes(features.n, np.concatenate(list(problem.each(lambda block: sequence_weights(block[0])))), how.c2)

    def most_violated(block: Encoded) -> tuple[float, FoundPlanes]:
        """Of an encoded block: Σ w max_y (cost + score(y)) of its sequences, and the planes of these labels."""
        labels, values = most_probable(features, planes.w, block[0], features.transitions(planes.w), cost=cost)
        own = planes_of(features, pair, block[0], labels[block[0].layout.order], cost)
        return float(sequence_weights(block[0]) @ values), own

    best, least, slack, low = np.zeros(features.n), np.inf, np.inf, -np.inf  # the smallest objective, and the largest dual
    trace, converged, stopped = list[WeightStep](), False, False
    try:
        for n in range(how.max_iter + 1):
            watch.check(f"pass {n + 1}, gap {least - low:,.4f}")
            found = list(problem.each(most_violated))
            size = how.c2 * float(planes.w @ planes.w)
            loss = sum(total for total, _ in found) - float(problem.seen @ planes.w)
            if loss + size < least:
                best, least, slack = planes.w.copy(), loss + size, loss
            low = max(low, planes.cost - size)
            trace.append(WeightStep(least, -slack, least - low, int(np.count_nonzero(best)), watch.seconds))
            converged = least - low <= how.tol * max(1.0, abs(least))
            if converged or n == how.max_iter:
                break
            planes.add([of_block for _, of_block in found])
            planes.climb(least - low)
    except (OutOfTime, KeyboardInterrupt):
        stopped = True
    finally:
        watch.close()
    if not converged:
        note(f"margins were {'stopped' if stopped else 'left'} before the gap was {how.tol:g} of the objective; the best so far")
    return best, WeightRun(tuple(trace), converged)


def pair_weights(features: PairFeatures) -> Ints:
    """The weight of label j after i, by its number, −1 for none."""
    pair = np.full((features.n_labels, features.n_labels), -1, np.int64)
    pair[features.before, features.after] = len(features.labels) + np.arange(len(features.before))
    return pair


class PerceptronWalk:
    """Weights w on their way through the sequences, those of labels in a row also as a matrix T; after n sequences w − u / n is
    the mean of all on the way."""

    def __init__(self, features: PairFeatures, start: Array) -> None:
        self.features, self.w, self.T = features, start.copy(), features.transitions(start)
        self.u, self.n = np.zeros(features.n), 0

    def through(self, block: EncodedBlock) -> float:
        """Take the sequences of a block in their order; how many labels were wrong, by weight."""
        from suffice.numerics.kernels.labels.crf import add_labels, best_sequence

        features, rows, wrong = self.features, InSequence.of(block), 0.0
        L, pair, numbers = features.n_labels, pair_weights(features), np.array(features.numbers, np.int64)
        given = (block.groups, *block.attributes, features.first, features.labels, block.numbers, numbers)
        room, path = np.empty((rows.longest, L)), np.empty(rows.longest, np.int32)
        for places in np.split(rows.places.astype(np.int64), rows.starts[1:-1]):
            best_sequence(places, *given, self.w, self.T, room, path)
            found, truth = path[: len(places)], block.labels[places]
            if n := int(np.count_nonzero(truth != found)):
                share = 1.0 if block.weights is None else float(block.weights[places[0]])
                wrong += share * n
                # what the right labels have and those that were found have not
                steps, pairs = np.zeros((len(places), L)), np.zeros((L, L))
                for labels, sign in ((truth, 1.0), (found, -1.0)):
                    steps[np.arange(len(places)), labels] += sign
                    np.add.at(pairs, (labels[:-1], labels[1:]), sign)
                add_labels(places, *given, pair, steps, pairs, share, self.w)
                add_labels(places, *given, pair, steps, pairs, share * self.n, self.u)
                changed = (pairs != 0.0) & (pair >= 0)
                self.T[changed] = self.w[pair[changed]]
            self.n += 1
        return wrong


def walk(problem: LabelProblem, how: Climbing, objective: Perceptron) -> tuple[Array, WeightRun]:
    """The weights after some epochs, or as soon as nothing is wrong. The objective in the trace is the number of wrong labels."""
    watch: Progress[Array] = how.budget.watch("perceptron")
    state, trace, converged = PerceptronWalk(problem.features, how.start), list[WeightStep](), False
    try:
        for epoch in range(objective.epochs):
            wrong = 0.0
            for block, _ in problem.blocks():
                watch.check(f"epoch {epoch + 1} of {objective.epochs}")
                wrong += state.through(block) if block.n_steps else 0.0
            trace.append(WeightStep(wrong, float("nan"), float("nan"), int(np.count_nonzero(state.w)), watch.seconds))
            if not wrong:  # nothing would change any more, but the mean goes on
                state.n += (objective.epochs - epoch - 1) * (state.n // (epoch + 1))
                converged = True
                break
    except (OutOfTime, KeyboardInterrupt):
        note("the perceptron was stopped before its end; these are its weights so far")
    finally:
        watch.close()
    w = state.w - state.u / max(1, state.n) if objective.averaged else state.w
    return w, WeightRun(tuple(trace), converged or len(trace) == objective.epochs)
