"""Columns of the regressions of each node on all others: states as contrasts, numbers standardised.

A variable j of K states is coded by K − 1 numbers z_j, its row of an orthonormal basis of the vectors that sum to zero, over √2:
two states are −½ and +½, as 0 and 1 are but for the mean. As the child of a regression, its states s have the scores

    ln p(x_i = s | rest) = z_i(s)·(h_i + Σ_j Θ_ijᵀ z_j) − ln Z

so that of two variables of two states each Θ_ij is the log odds ratio given the rest (4 J_ij of an Ising model). The norm of
Θ_ij, over all of its (K_i − 1)(K_j − 1) numbers, does not depend on the basis, and so not on the order of the states. A real
variable is its number less the mean, in units of *two* standard deviations: then it varies as two equally frequent states do
(Gelman 2008, Statistics in Medicine 27, p. 2865), and one penalty is fair to both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.errors import TooLarge, bytes_in_words
from suffice.statistics import Request, Statistics
from suffice.variables import Finite, Variable

PRODUCTS = 2**31
"""Bytes that the products of all pairs of columns may take."""


@dataclass(frozen=True, eq=False)
class NodeColumns:
    """How the cells of a row become numbers: column 0 is 1, and those of variable j are first[j] : first[j + 1].

    `tables[j]` has a row of numbers for each state, 0 for one that no row has; of a real variable it has one row, its mean and
    twice its standard deviation. `shares[j]` are the shares of the states among the rows, none of a real variable.

    >>> from suffice import scan
    >>> data = scan({"x": ["a", "b", "a"], "y": ["u", "v", "w"]})
    >>> columns = NodeColumns.of(data, list(data.schema.values()))
    >>> columns.first
    array([1, 2, 4])
    >>> columns.numbers(Block({"x": np.array([0, 1, 0]), "y": np.array([0, 1, 2])})).round(2)
    array([[ 1.  ,  1.  ,  1.  ],
           [-0.5 ,  0.5 , -0.5 ],
           [-0.5 ,  0.5 ,  0.  ],
           [-0.29, -0.29,  0.58]])
    """

    names: tuple[str, ...]
    finite: tuple[bool, ...]
    tables: tuple[Array, ...]
    shares: tuple[Array, ...]

    @staticmethod
    def of(data: Data, variables: Sequence[Variable], *, threads: int | None = None) -> NodeColumns:
        """The columns of some finite and real variables; one that does not vary is coded as 0."""
        finite = tuple(isinstance(v, Finite) for v in variables)
        requests = [Request((v.name,)) if f else Request((), (v.name,)) for v, f in zip(variables, finite, strict=True)]
        seen = data.gather(requests, threads=threads)
        tables, shares = [], []
        for v, f in zip(variables, finite, strict=True):
            table, share = _states(seen, v.name) if f else _spread(seen, v.name)
            tables.append(table)
            shares.append(share)
        result = NodeColumns(tuple(v.name for v in variables), finite, tuple(tables), tuple(shares))
        n_bytes = 8.0 * float(result.first[-1]) ** 2
        if n_bytes > PRODUCTS:
            raise TooLarge(
                f"the {result.first[-1]:,} columns of {len(variables):,} variables have products that take "
                f"{bytes_in_words(n_bytes)}, more than {bytes_in_words(PRODUCTS)}: take fewer variables, or merge their states"
            )
        return result

    @cached_property
    def first(self) -> Ints:
        """Where the columns of each variable begin."""
        return np.cumsum([1, *(t.shape[1] if f else 1 for t, f in zip(self.tables, self.finite, strict=True))])

    @cached_property
    def sizes(self) -> Ints:
        """How many columns each variable has."""
        return np.diff(self.first)

    def at(self, variable: int) -> slice:
        """The columns of a variable."""
        return slice(int(self.first[variable]), int(self.first[variable + 1]))

    def weight(self, child: int) -> Array:
        """What λ is multiplied with for each variable j in the regression of i: √((K_i − 1)(K_j − 1)), 1 in place of K − 1 for a
        real one."""
        return np.asarray(np.sqrt(self.sizes * self.sizes[child]))

    def numbers(self, block: Block, rows: slice = slice(None)) -> Array:
        """The columns of some rows of a block: [column, row]."""
        cells = [block.columns[name][rows] for name in self.names]
        X = np.empty((int(self.first[-1]), len(cells[0])))
        X[0] = 1.0
        if self.two_states:
            np.subtract(np.array(cells, np.uint8), 0.5, out=X[1:])
            return X
        for j, (column, finite, table) in enumerate(zip(cells, self.finite, self.tables, strict=True)):
            if finite:
                X[self.at(j)] = table.T[:, column]
            else:
                np.divide(column - table[0, 0], table[0, 1], out=X[self.first[j]])
        return X

    @property
    def constant(self) -> tuple[bool, ...]:
        """Which variables do not vary."""
        return tuple(not t.any() if f else bool(np.isinf(t[0, 1])) for t, f in zip(self.tables, self.finite, strict=True))

    @cached_property
    def two_states(self) -> bool:
        """Whether all variables have two states."""
        return all(self.finite) and all(len(table) == 2 and table.any() for table in self.tables)


def contrasts(n_states: int) -> Array:
    """An orthonormal basis of the vectors over some states that sum to zero, over √2: each state against those before it.

    >>> contrasts(2)
    array([[-0.5],
           [ 0.5]])
    """
    z = np.zeros((n_states, n_states - 1))
    for k in range(1, n_states):
        z[:k, k - 1], z[k, k - 1] = -1.0, k
        z[:, k - 1] *= np.sqrt(0.5 / (k * (k + 1)))
    return z


def _states(seen: Statistics, name: str) -> tuple[Array, Array]:
    """The numbers of each state, and their shares."""
    counts = np.asarray(seen.counts([name]).values, np.float64)
    occur = np.flatnonzero(counts > 0)
    table = np.zeros((len(counts), max(len(occur) - 1, 1)))
    if len(occur) > 1:
        table[occur] = contrasts(len(occur))
    return table, counts / counts.sum()


def _spread(seen: Statistics, name: str) -> tuple[Array, Array]:
    """The mean of a real column, and twice its standard deviation."""
    moments = seen.moments((), [name])
    mean, deviation = float(moments.mean[0, 0]), float(np.sqrt(moments.scatter[0, 0, 0] / moments.count[0]))
    return np.array([[mean, 2.0 * deviation if deviation > 1e-12 * abs(mean) else np.inf]]), np.empty(0)
