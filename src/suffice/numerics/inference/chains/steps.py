"""Steps of sequences with hidden finite states, as arrays, and what is expected of the states given what was seen.

Steps may show numbers which are normal given the hidden state, all of them: scored and summed where lanes need it, so that
neither likelihoods nor posteriors of all steps are written down.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array as Array
from suffice.basis.arrays import Bools
from suffice.basis.arrays import Ints as Ints
from suffice.statistics.moments import Spread, merge_spreads


@dataclass(frozen=True, eq=False)
class StateNormals:
    """Numbers x[c, t], and for each state its linear forms in them: see `kernels.chains.state_normals.score_normals`.
    `pairs` says of which pairs of a column and a four of columns the products are needed."""

    x: Array
    centre: Array
    weight: Array
    used: Bools
    base: Array
    constant: Array
    pairs: Bools

    def log_likelihood(self) -> Array:
        """ln p of each step under each state."""
        out = np.empty((len(self.base), self.x.shape[1]))
        self.score(out, 0, fresh=True)
        return out

    def score(self, out: Array, begin: int, *, fresh: bool) -> None:
        """Add ln p of each step under each state to the columns of `out` from `begin` on; or put it there."""
        from suffice.numerics.kernels.chains.state_normals import score_normals

        score_normals(self.x, self.x.shape[1], *self.forms, begin, fresh, out)

    @property
    def forms(self) -> tuple[Array, Array, Bools, Array, Array]:
        """What `score_normals` takes after the numbers."""
        return self.centre, self.weight, self.used, self.base, self.constant

    def moments(self, share: Array, weight: Array, first: int, last: int) -> Spread:
        """Moments of some of the steps for each state, whose share of step t is share[k, t], times its weight if there is one."""
        x = np.ascontiguousarray(self.x[:, first:last])
        return weighted_numbers(x, self.pairs, share[: len(self.base)], weight, first)


def no_moments(n_states: int, n_columns: int) -> Spread:
    square = np.zeros((n_states, n_columns, n_columns))
    return Spread(np.zeros(n_states), np.zeros((n_states, n_columns)), np.zeros((n_states, n_columns)), square)


def weighted_numbers(x: Array, pairs: Bools, share: Array, weight: Array, begin: int) -> Spread:
    """Moments of numbers x[c, t] for each state, whose share of step t is share[k, begin + t], times weight[t] if there are
    weights; lower triangles only."""
    from suffice.numerics.kernels.chains.state_normals import sum_normals

    found = no_moments(len(share), len(x))
    sum_normals(x, x.shape[1], share, begin, weight, pairs, found.weight, found.mean, found.scatter)
    return found


def add_moments(into: Spread, more: Spread) -> None:
    for mine, both in zip(into, merge_spreads(into, more), strict=True):
        mine[:] = both


Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class StateSteps:
    """Sequences of hidden states with K values: S sequences, T steps in all.

    Sequence q has the steps starts[q] … starts[q + 1] − 1, step t the matrix matrices[codes[t]] of p(s' | s). The likelihood
    of a step is table[symbols[t]], exp(log_likelihood[:, t]), or their product if both are given, or that of `normals`. `weights`
    count sequences. Best paths go by `log_matrices`, if they are given: logarithms of numbers that no float holds."""

    starts: Ints
    codes: Codes
    matrices: Array
    symbols: Codes | None = None
    table: Array | None = None
    log_likelihood: Array | None = None
    weights: Array | None = None
    normals: StateNormals | None = None
    log_matrices: Array | None = None

    def __post_init__(self) -> None:
        """Kernels take arrays of one kind only: others, also such as may not be written to, are copied."""
        kinds = {"starts": np.int64, "codes": np.int32, "symbols": np.int32}
        for field in fields(self):
            if (given := getattr(self, field.name)) is not None and field.name != "normals":
                array = np.require(given, kinds.get(field.name, np.float64), ["C_CONTIGUOUS", "WRITEABLE"])
                object.__setattr__(self, field.name, array)

    @property
    def n_states(self) -> int:
        return int(self.matrices.shape[1])

    @property
    def n_sequences(self) -> int:
        return len(self.starts) - 1

    @property
    def n_steps(self) -> int:
        return len(self.codes)

    @property
    def dense(self) -> bool:
        """Whether each step has likelihoods of its own."""
        return self.log_likelihood is not None or self.normals is not None

    @property
    def longest(self) -> int:
        return int(np.diff(self.starts).max(initial=0))

    @property
    def weights_or_ones(self) -> Array:
        return np.ones(self.n_sequences) if self.weights is None else self.weights

    @property
    def some_symbols(self) -> Codes:
        """The symbol of each step, none if there is no table."""
        return np.zeros(0, np.int32) if self.symbols is None else self.symbols

    @property
    def some_logs(self) -> Array:
        """The log likelihoods of each step, none if there are none."""
        return np.zeros((self.n_states, 0)) if self.log_likelihood is None else self.log_likelihood

    @property
    def logs(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.matrices) if self.log_matrices is None else self.log_matrices

    def arrays(self, *, log_matrices: bool = False) -> tuple[npt.NDArray[np.generic], ...]:
        """What the general kernels take after the numbers of sequences."""
        with np.errstate(divide="ignore"):
            logs = np.zeros((0, self.n_states)) if self.table is None else np.log(self.table)
            matrices = self.logs if log_matrices else self.matrices
        return self.starts, self.codes, matrices, self.some_symbols, logs, self.some_logs


class Expectations(NamedTuple):
    """Expected statistics of hidden states.

    `log_likelihood[q]` = ln p(y) of sequence q, `stuck[q]` the first of its steps that no state explains or −1;
    `pairs[c, i, j]` = Σ w p(s_{t−1} = i, s_t = j | y) over steps of code c; `counts[e, j]` = Σ w p(s_t = j | y) over steps of
    symbol e; `posterior[j, t]` = p(s_t = j | y), not weighted. A sequence that is stuck has log-likelihood −inf, zeros as
    posterior, and adds nothing.
    """

    log_likelihood: Array
    stuck: Ints
    pairs: Array
    counts: Array
    posterior: Array
