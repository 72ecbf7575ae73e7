"""Steps that show numbers which are normal given the hidden state, all of them: scored and summed where lanes need it, so that
neither likelihoods nor posteriors of all steps are written down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.statistics.moments import Spread, merge_spreads

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class StateNormals:
    """Numbers x[c, t], and for each state its linear forms in them: see `suffice.kernels.chains.state_normals.score_normals`.

    `pairs` says of which pairs of a column and a four of columns the products are needed.

    >>> x, one = np.array([[0.0, 3.0]]), np.zeros((1, 4, 4))
    >>> one[0, 0, 0] = np.sqrt(0.5)
    >>> every = np.ones((1, 1), bool)
    >>> normals = StateNormals(x, np.zeros((1, 4)), one, every, np.zeros((1, 4)), np.zeros(1), every)
    >>> normals.log_likelihood().round(12)
    array([[ 0. , -4.5]])
    >>> normals.moments(np.array([[1.0, 2.0]]), np.zeros(0), 0, 2).mean
    array([[2.]])
    """

    x: Array
    centre: Array
    weight: Array
    used: Flags
    base: Array
    constant: Array
    pairs: Flags

    @property
    def n_columns(self) -> int:
        """How many numbers a step has."""
        return len(self.x)

    def log_likelihood(self) -> Array:
        """ln p of each step under each state."""
        out = np.empty((len(self.base), self.x.shape[1]))
        self.score(out, 0, fresh=True)
        return out

    def score(self, out: Array, begin: int, *, fresh: bool) -> None:
        """Add ln p of each step under each state to the columns of `out` from `begin` on; or put it there."""
        from suffice.kernels.chains.state_normals import score_normals

        score_normals(self.x, self.x.shape[1], *self.forms, begin, fresh, out)

    @property
    def forms(self) -> tuple[Array, Array, Flags, Array, Array]:
        """What `score_normals` takes after the numbers."""
        return self.centre, self.weight, self.used, self.base, self.constant

    def nothing(self) -> Spread:
        """The moments of no steps."""
        return no_moments(len(self.base), self.n_columns)

    def moments(self, share: Array, weight: Array, first: int, last: int) -> Spread:
        """Moments of some of the steps for each state, whose share of step t is share[k, t], times its weight if there is one."""
        x = np.ascontiguousarray(self.x[:, first:last])
        return weighted_numbers(x, self.pairs, share[: len(self.base)], weight, first)


def no_moments(n_states: int, n_columns: int) -> Spread:
    """The moments of no steps, for each state."""
    square = np.zeros((n_states, n_columns, n_columns))
    return Spread(np.zeros(n_states), np.zeros((n_states, n_columns)), np.zeros((n_states, n_columns)), square)


def weighted_numbers(x: Array, pairs: Flags, share: Array, weight: Array, begin: int) -> Spread:
    """Moments of numbers x[c, t] for each state, whose share of step t is share[k, begin + t], times weight[t] if there are
    weights; lower triangles only."""
    from suffice.kernels.chains.state_normals import sum_normals

    found = no_moments(len(share), len(x))
    sum_normals(x, x.shape[1], share, begin, weight, pairs, found.weight, found.mean, found.scatter)
    return found


def add_moments(into: Spread, more: Spread) -> None:
    """Add the moments of other steps."""
    for mine, both in zip(into, merge_spreads(into, more), strict=True):
        mine[:] = both
