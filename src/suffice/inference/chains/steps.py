"""Steps of sequences with hidden finite states, as arrays, and what is expected of the states given what was seen."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from suffice.inference.chains.normals import StateNormals

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class StateSteps:
    """Sequences of hidden states with K values: S sequences, T steps in all.

    Sequence q has the steps starts[q] … starts[q + 1] − 1, step t the matrix matrices[codes[t]] of p(s' | s). The likelihood
    of a step is table[symbols[t]], exp(log_likelihood[:, t]), or their product if both are given, or that of `normals`. `weights`
    count sequences.

    >>> steps = StateSteps(np.array([0, 2]), np.array([0, 1], np.int32), np.full((2, 2, 2), 0.5),
    ...                    symbols=np.array([0, 1], np.int32), table=np.array([[0.9, 0.2], [0.1, 0.8]]))
    >>> steps.n_states, steps.n_sequences, steps.n_steps
    (2, 1, 2)
    """

    starts: Ints
    codes: Codes
    matrices: Array
    symbols: Codes | None = None
    table: Array | None = None
    log_likelihood: Array | None = None
    weights: Array | None = None
    normals: StateNormals | None = None

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
        """The number of steps of the longest sequence."""
        return int(np.diff(self.starts).max(initial=0))

    @property
    def weights_or_ones(self) -> Array:
        """The weight of each sequence."""
        return np.ones(self.n_sequences) if self.weights is None else self.weights

    @property
    def some_symbols(self) -> Codes:
        """The symbol of each step, none if there is no table."""
        return np.zeros(0, np.int32) if self.symbols is None else self.symbols

    @property
    def some_logs(self) -> Array:
        """The log likelihoods of each step, none if there are none."""
        return np.zeros((self.n_states, 0)) if self.log_likelihood is None else self.log_likelihood

    def arrays(self, *, log_matrices: bool = False) -> tuple[npt.NDArray[np.generic], ...]:
        """What the general kernels take after the numbers of sequences."""
        with np.errstate(divide="ignore"):
            logs = np.zeros((0, self.n_states)) if self.table is None else np.log(self.table)
            matrices = np.log(self.matrices) if log_matrices else self.matrices
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
