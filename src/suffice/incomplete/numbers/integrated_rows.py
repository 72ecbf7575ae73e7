"""Missing numbers under regressions that are not normal: integrated over points, each a completion of its row with a weight.

Given the joint state s of the missing finite variables, the normal nodes make the missing numbers u normal: u = m + L v. Of those
that a regression has among its parents, v is put on points; of the others the mean and covariance given these are known. So

    ∫ p(u) Π p(y | u) du  =  Σ_k w_k Π p(y | m + L v_k)          ln w_k[s, row]  as in `completed_rows`

and everything else is as with enumerated states. The points adapt to each row: from standard normal ones they are moved and
scaled to the mean and covariance of the posterior that they show, again and again (Naylor & Smith 1982, Applied Statistics 31,
p. 214). They are stated in `patterns`; draws, which stand for more than three numbers, stay where they are.

Missing counts that other nodes depend on are summed over their values, each a copy of the row in which it is that value:

    p(row)  =  Σ_c p(row, c)          c = 0 … K, joint values where several are missing together

The sum has no end, but in each joint state of what else is missing the last quarter of the values from 0 to K has no more than
`TAIL` of its mass; where it has more, K is doubled. K follows the parameters: it is found anew in each pass over the rows. Beyond
it the terms fall, as those of Poisson, binomial and negative binomial counts do under normal, logistic and log-linear children.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools, Ints
from suffice.engines.engine import sum_up
from suffice.errors import TooLarge, listing
from suffice.errors.remedies import INTO_BINS
from suffice.incomplete.components import Expectation, Theta
from suffice.incomplete.numbers.completed_rows import (
    CELLS,
    Batch,
    UnknownNumbers,
    add_unknown,
    expect_batch,
    expected_step,
    gather_completions,
    log_weights,
    other_columns,
    posterior,
)
from suffice.incomplete.numbers.patterns import TAIL, HermitePoints, Member, digits_of, points
from suffice.incomplete.numbers.units import Units

ROUNDS = 8
"""How often points are moved at most."""

SETTLED = 0.05
"""They stay when their middle would move by less than this many deviations, and no deviation would change by a larger share."""


def expected_rows(batch: Batch, theta: Theta, units: Units) -> Expectation:
    """What the rows of a batch are expected to add, and their ln p(observed), whatever is missing in them."""
    parts, curved = whole(batch, theta, units), batch.component.curved
    total = sum_up(_Integral.of(b, theta, units).expect() if curved else expect_batch(b, theta, units) for b in parts)
    assert total is not None
    return total


def whole(batch: Batch, theta: Theta, units: Units) -> Iterator[Batch]:
    """A batch, in parts where counts are missing in it that are summed: as copies that lack none."""
    first, summed = partial(_log_weights, theta=theta, units=units), batch.component.summed
    return _copies(batch, np.full(len(summed), FIRST), first) if summed else iter([batch])


def log_weights_of_states(batch: Batch, theta: Theta, units: Units) -> Array:
    """ln w of each joint state and row, whatever else is missing; −∞ where there is no estimate: that does not occur."""
    parts = ((_log_weights(b, theta, units), b.copies) for b in whole(batch, theta, units))
    logs = np.concatenate([x if n == 1 else np.logaddexp.reduce(x.reshape(len(x), -1, n), axis=2) for x, n in parts], axis=1)
    return np.where(np.isnan(logs), -np.inf, logs)


def _log_weights(batch: Batch, theta: Theta, units: Units) -> Array:
    """The same of rows that lack no count."""
    if not batch.component.curved:
        return log_weights(batch, theta, other_columns(batch, units))[0]
    own = _Integral.of(batch, theta, units)
    return np.asarray(own.base + np.logaddexp.reduce(own.place_points()[1], axis=1))


def weighted_points(batch: Batch, theta: Theta, units: Units, least: float) -> Iterator[tuple[Ints, Array, Array]]:
    """The `completed` numbers of rows at their points, in every joint state, but for points of less than the `least` posterior
    probability: the row of each point, the numbers there, [number, point], and its probability."""
    component = batch.component
    for b in whole(batch, theta, units):
        n = len(b.rows.weight)
        if component.gridded:
            own = _Integral.of(b, theta, units)
            v, log_share = own.place_points()
            logs = (own.base[:, None] + log_share).reshape(-1, n)
            at = own.numbers(v)[list(component.gridded)].reshape(len(component.gridded), *logs.shape)
        else:
            logs = log_weights(b, theta, other_columns(b, units))[0]
            at = np.zeros((0, *logs.shape))
        share = posterior(np.where(np.isnan(logs), -np.inf, logs), b.rows, b.copies)[1] / b.rows.weight
        point, place = np.nonzero(share > least)
        counts = b.rows.reals[list(component.summed)][:, place]
        yield b.rows.row[place], np.concatenate([at[:, point, place], counts]), share[point, place]


class _Integral(NamedTuple):
    """The missing numbers of a batch at their points. Leading axes: numbers, states, points, rows."""

    batch: Batch
    theta: Theta
    units: Units
    joint: UnknownNumbers
    base: Array
    columns: dict[str, dict[str, npt.NDArray[np.generic]]]
    maps: Array
    """How all unknown numbers hang on v, [row, state, unknown, number]."""

    @staticmethod
    def of(batch: Batch, theta: Theta, units: Units) -> _Integral:
        columns = other_columns(batch, units)
        base, joint = log_weights(batch, theta, columns)
        assert joint is not None
        C, at = joint.given.covariance, list(batch.component.gridded)
        root = np.linalg.cholesky(C[..., at, :][..., at])
        maps = C[..., :, at] @ np.swapaxes(np.linalg.inv(root), -1, -2)
        group = np.repeat(np.arange(len(batch.bounds) - 1), np.diff(batch.bounds))
        return _Integral(batch, theta, units, joint, base, columns, maps[group])

    def expect(self) -> Expectation:
        component, rows = self.batch.component, self.batch.rows
        v, log_share = self.place_points()
        S, K, n = log_share.shape
        logs, weight = posterior((self.base[:, None] + log_share).reshape(S * K, n), rows, self.batch.copies)
        total = gather_completions(self.batch, self.theta, self.columns, None, weight.reshape(S, K, n).sum(axis=1))
        numbers = self.numbers(v)
        for local in component.curved:
            total.steps[local.node.name] = expected_step(local, self.theta, self._at(local, numbers), weight.reshape(-1))
        # the unknown numbers as if each point were a state of its own: means there, and the covariance that is left
        given, at, maps = self.joint.given, list(component.gridded), self.maps[self.batch.bounds[:-1]]
        left = given.covariance - maps @ np.swapaxes(maps, -1, -2)
        left[..., at, :] = 0.0
        left[..., :, at] = 0.0
        indices = [np.repeat(index, K, axis=1) for index in self.joint.indices]
        points = given._replace(covariance=np.repeat(left, K, axis=1)), indices, self.joint.log_density
        add_unknown(self.batch, UnknownNumbers(*points, numbers.reshape(len(numbers), S * K, n)), weight, total)
        return total._replace(log_likelihood=logs)

    def place_points(self) -> tuple[Array, Array]:
        """v at the points of each state and row, and ln of what each point stands for times ln p of the regressions there."""
        d, S, n = len(self.batch.component.gridded), *self.base.shape
        at, middle = points(d), np.zeros((d, S, n))
        root = np.broadcast_to(np.eye(d)[:, :, None, None], (d, d, S, n))
        for _ in range(ROUNDS if at.spacing and self.batch.component.curved else 0):
            v, log_share = self._shares(at, middle, root)
            moved, wider = _moments(v, log_share, root, at.spacing)
            turned = np.moveaxis(root, (0, 1), (-2, -1))
            off = np.linalg.solve(turned, np.moveaxis(moved - middle, 0, -1)[..., None])
            ratio = wider[range(d), range(d)] / root[range(d), range(d)]
            middle, root = moved, wider
            if np.abs(off).max(initial=0.0) < SETTLED and np.abs(np.log(ratio)).max(initial=0.0) < SETTLED:
                break
        return self._shares(at, middle, root)

    def _shares(self, at: HermitePoints, middle: Array, root: Array) -> tuple[Array, Array]:
        v = middle[:, :, None] + np.einsum("ijsn,jk->iskn", root, at.z)
        scale = np.log(np.prod([root[i, i] for i in range(len(root))], axis=0))
        moved = 0.5 * (at.z**2).sum(axis=0)[:, None] - 0.5 * (v**2).sum(axis=0)
        log_share = at.log_weight[:, None] + moved + scale[:, None]
        numbers = self.numbers(v)
        for local in self.batch.component.curved:
            log_p = self.theta.others[local.node.name].log_prob(self._at(local, numbers))
            log_share = log_share + np.where(np.isnan(log_p), -np.inf, log_p).reshape(log_share.shape)
        return v, log_share

    def numbers(self, v: Array) -> Array:
        """All unknown numbers at the points, [unknown, state, point, row]."""
        return np.asarray(self.joint.mean[:, :, None] + np.einsum("nsud,dskn->uskn", self.maps, v))

    def _at(self, local: Member, numbers: Array) -> dict[str, npt.NDArray[np.generic]]:
        """The columns of a regression at every state, point and row, one after another."""
        component, rows, shape = self.batch.component, self.batch.rows, numbers.shape[1:]
        digits, result = digits_of(component.shape), {}
        for name, (kind, place) in local.sources.items():
            column: npt.NDArray[np.generic]
            if kind == "state":
                column = digits[place][:, None, None]
            elif kind == "unknown":
                column = self.units.outward(name, numbers[place])
            else:
                column = rows.codes[place] if kind == "code" else self.units.outward(name, rows.reals[place])
            result[name] = np.broadcast_to(column, shape).reshape(-1)
        return result


def _moments(v: Array, log_share: Array, root: Array, spacing: float) -> tuple[Array, Array]:
    """The mean of the points by their shares, and a root of their covariance, which stays a little wider than one point."""
    top = log_share.max(axis=1, keepdims=True)
    share = np.exp(np.where(top > -np.inf, log_share - top, 0.0))
    share /= share.sum(axis=1, keepdims=True)
    mean = np.einsum("skn,dskn->dsn", share, v)
    off = v - mean[:, :, None]
    covariance = np.einsum("skn,dskn,eskn->snde", share, off, off)
    least = (0.5 * spacing) ** 2 * np.einsum("ijsn,kjsn->snik", root, root)
    return mean, np.moveaxis(np.linalg.cholesky(covariance + least), (-2, -1), (0, 1))


FIRST = 15
"""The largest value that is looked at first,"""

MOST = 2**16
"""and how many joint values there may be."""


def _copies(batch: Batch, top: Ints, log_weights: Callable[[Batch], Array]) -> Iterator[Batch]:
    """A batch in parts, in the order of its rows, each with a copy of every row for each value, up to `top` or more, that its
    missing counts may have. `log_weights` gives ln w of the joint states and rows of a batch of copies."""
    n, copies, summed = len(batch.rows.weight), math.prod((top + 1).tolist()), list(batch.component.summed)
    if n > 1 and n * copies * batch.component.n_completions > CELLS:
        yield from _copies(batch.part(0, n // 2), top, log_weights)
        yield from _copies(batch.part(n // 2, n), top, log_weights)
        return
    rows = batch.rows.take(np.repeat(np.arange(n), copies))
    rows.reals[summed] = np.tile(np.indices(tuple(top + 1)).reshape(len(top), copies), n)
    found = replace(batch, rows=rows, bounds=batch.bounds * copies, copies=copies)
    short, lost = _are_short(log_weights(found).reshape(-1, n, *(top + 1)))
    wider = np.where(short | lost, 2 * top + 1, top)
    if not short.any() and not lost:
        yield found
    elif math.prod((wider + 1).tolist()) <= MOST:
        yield from _copies(batch, wider, log_weights)
    elif short.any():
        raise TooLarge(
            f"missing counts of {listing([batch.component.reals[i] for i in summed])} have more than {MOST:,} values that "
            f"matter, over which they would be summed: fill them, or cut them {INTO_BINS}"
        )
    else:
        yield found  # a row that is impossible whatever the count was, as its posterior will say


def _are_short(logs: Array) -> tuple[Bools, bool]:
    """Which counts have too much of the mass in the last quarter of their values, `logs` of [state, row, values of each], and
    whether a row has no mass yet."""
    logs, values = np.where(np.isnan(logs), -np.inf, logs), tuple(range(2, logs.ndim))
    largest = logs.max(axis=values, keepdims=True)
    share = np.exp(logs - np.where(largest > -np.inf, largest, 0.0))
    whole = TAIL * share.sum(axis=values)
    last = [share.take(range(3 * share.shape[axis] // 4, share.shape[axis]), axis=axis).sum(axis=values) for axis in values]
    return np.array([bool((tail > whole).any()) for tail in last]), not bool((whole > 0).any(axis=0).all())
