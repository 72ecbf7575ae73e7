"""Rows with a hidden class: what the class of a row, and its missing cells, are expected to be.

    p(row) = Σ_k w_k Π_parts p(columns of the part | class k)         r_k(row) = w_k p(row | k) / p(row)

They are one more kind of components: parameters in, statistics that add and ln p out. Rows are passed over in each expectation,
a few at a time. A part is columns that have one distribution together in each class, with its parameters, arrays that have the
classes on their first axis. It is asked two things about a few rows:

    scored(…)              adds ln p(columns | class) to an array, one row per class, and remembers what it used
    gathered(memory, r)    the statistic of these rows weighted by responsibilities r: an array, or a tuple of them, that adds

`block_rows` are the rows that it should be asked about at once, at most.

*Finite columns and counts* are products of matrices, ln p = c(θ) · h with the statistic r · hᵀ: for tables h are indicators of
states and c = ln θ, for counts h = (x, 1) and c = (ln λ, −λ), less ln x!, which is the same in every class. A missing cell is a
column of zeros in h.

*Normal columns*: x | class k ~ Normal(μ_k, L_k L_kᵀ), and z = L_k⁻¹ (x − μ_k) is standard normal. The statistic is kept in z,
around the parameters under which it was gathered: Σ r, Σ r z, Σ r z zᵀ are then near N, 0, N·I, and no digits are lost however
far the means are from 0 or the classes from each other. Cells may be missing. With o the observed columns and L_o = Rᵀ Qᵀ their
rows of L (QR decomposition), z | x_o ~ Normal(G (x_o − μ_o), I − Q Qᵀ) with G = Q R⁻ᵀ, and (x_o − μ_o)ᵀ Σ_oo⁻¹ (x_o − μ_o) =
|E z|²: only G changes from one pattern of missing cells to another, and Σ r (I − Q Qᵀ) is added to the statistic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from suffice.basis.arrays import Array
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, add_up
from suffice.errors import DataError
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.statistics.counts import alike, log_factorial

LOG_ZERO = -1e200
"""Stands for ln 0, so that 0 · ln 0 is 0 in a product of matrices."""

IMPOSSIBLE = -1e199
"""A sum of logarithms below this has `LOG_ZERO` in it: the probability is 0."""

CELLS = 2**18
"""Numbers of an array of a block of rows: two megabytes, by measurement."""

SMALL = 2**19
"""Multiplications of a product that the BLAS makes in one thread; threads of its own would wait for each other, and for ours."""


@dataclass(frozen=True, eq=False)
class ClassPart:
    """Columns with their parameters; `arrays` are those that have the classes on their first axis."""

    names: tuple[str, ...]

    arrays: ClassVar[tuple[str, ...]]

    def permute(self, order: Sequence[int]) -> Self:
        """The same, the classes in another order."""
        return replace(self, **{name: getattr(self, name)[list(order)] for name in self.arrays})


@dataclass(frozen=True, eq=False)
class LinearPart(ClassPart):
    """ln p = c · h. Parameters: class × state, or class × count."""

    table: Array

    arrays: ClassVar = ("table",)

    def gather(self, memory: Array, responsibilities: Array) -> Array:
        return np.asarray(responsibilities @ memory.T)


@dataclass(frozen=True, eq=False)
class ClassTables(LinearPart):
    """Finite columns of so many states: those of all of them one after the other."""

    sizes: tuple[int, ...]

    @property
    def block_rows(self) -> int:
        return CELLS // int(max(self.table.shape))

    def split(self, table: Array) -> list[Array]:
        """The part of each column."""
        return np.split(table, np.cumsum(self.sizes)[:-1], axis=1)

    @cached_property
    def _coefficients(self) -> Array:
        return logs(self.table)

    def add_log_probs(self, block: Block, rows: slice, log_probs: Array) -> Array:
        n = log_probs.shape[1]
        h, each = np.zeros((self.table.shape[1], n)), np.arange(n)
        for name, size, offset in zip(self.names, self.sizes, np.cumsum((0, *self.sizes)), strict=False):
            codes, seen = block.columns[name][rows].astype(np.intp), each
            if codes.max() >= size:
                seen = np.flatnonzero(codes < size)
                codes = codes[seen]
            h[codes + offset, seen] = 1.0
        log_probs += self._coefficients @ h
        return h


@dataclass(frozen=True, eq=False)
class ClassRates(LinearPart):
    """Counts: the rate of each."""

    @property
    def block_rows(self) -> int:
        return CELLS // sum(self.table.shape)

    @cached_property
    def _coefficients(self) -> Array:
        return np.concatenate([logs(self.table), -self.table], axis=1)

    def add_log_probs(self, block: Block, rows: slice, log_probs: Array) -> Array:
        h, d = np.ones((2 * len(self.names), log_probs.shape[1])), len(self.names)
        for j, name in enumerate(self.names):
            h[j] = block.columns[name][rows]
        lost = np.isnan(h[:d])
        if lost.any():
            h[d:][lost] = h[:d][lost] = 0.0
        log_probs += self._coefficients @ h
        return h


@dataclass(frozen=True, eq=False)
class ClassNormals(ClassPart):
    """Real columns: means (class × column, less the shift) and the lower triangular roots of the covariances (class × column ×
    column), or the standard deviations where columns are independent (class × column)."""

    shift: Array
    mean: Array
    root: Array

    arrays: ClassVar = ("mean", "root")

    @property
    def moments(self) -> tuple[Array, Array]:
        """The means and covariances of the classes."""
        root = self.root[:, :, None] * np.eye(len(self.names)) if self.root.ndim == 2 else self.root
        return self.mean + self.shift, root @ root.transpose(0, 2, 1)

    def _fill_columns(self, x: Array, block: Block, rows: slice) -> Array:
        """The columns less their shift, in the first lines of x."""
        for j, name in enumerate(self.names):
            np.subtract(block.columns[name][rows], self.shift[j], out=x[j])
        return x


class _Pattern(NamedTuple):
    """z = matrix · (x, 1), a matrix for each class; what is added to ln p; what the missing cells leave of Cov z."""

    matrix: Array
    constant: Array
    left: Array | None


Standard = tuple[Array, list[tuple[Array, Any]]]
"""z of some rows, and for those with missing cells what these leave of Cov z."""


class JointNormals(ClassNormals):
    """Columns that are normal together."""

    @property
    def block_rows(self) -> int:
        d = len(self.names) + 1
        return min(CELLS // (len(self.mean) * d), SMALL // d**2)

    def add_log_probs(self, block: Block, rows: slice, log_probs: Array) -> Standard:
        d = len(self.names)
        x = self._fill_columns(np.ones((d + 1, log_probs.shape[1])), block, rows)
        left = list[tuple[Array, Any]]()
        if np.isnan(x.min()):  # as a cell that is missing is
            lost = np.isnan(x)
            x[lost] = 0.0
            z = np.empty((len(self.mean), *x.shape))
            seen = ~lost[:d]
            for some in alike(seen.T):
                pattern = self._pattern(seen[:, some[0]])
                z[:, :, some] = pattern.matrix @ x[:, some]
                log_probs[:, some] += pattern.constant
                left += [] if pattern.left is None else [(pattern.left, some)]
        else:
            z = self._complete.matrix @ x
            log_probs += self._complete.constant
        square = np.einsum("kdb,kdb->kb", z[:, :d], z[:, :d])
        square *= 0.5
        log_probs -= square
        return z, left

    def gather(self, memory: Standard, responsibilities: Array) -> Array:
        z, leftovers = memory
        total: Array = (z * responsibilities[:, None, :]) @ z.transpose(0, 2, 1)
        d = len(self.names)
        for left, rows in leftovers:
            total[:, :d, :d] += left * responsibilities[:, rows].sum(axis=1)[:, None, None]
        return total

    @cached_property
    def _complete(self) -> _Pattern:
        return self._map_pattern(inverses(self.root), self.root, None)

    @cached_property
    def _patterns(self) -> dict[bytes, _Pattern]:
        return {}

    def _pattern(self, seen: Any) -> _Pattern:
        """The map from rows that show these columns to z."""
        if seen.all():
            return self._complete
        if (key := seen.tobytes()) not in self._patterns:  # two threads may both find it: they find the same
            Q, R = np.linalg.qr(self.root[:, seen].transpose(0, 2, 1))
            G = np.zeros_like(self.root)
            G[:, :, seen] = Q @ inverses(R.transpose(0, 2, 1))
            self._patterns[key] = self._map_pattern(G, R, np.eye(len(seen)) - Q @ Q.transpose(0, 2, 1))
        return self._patterns[key]

    def _map_pattern(self, G: Array, R: Array, left: Array | None) -> _Pattern:
        """The last row of each class makes a 1 of the 1."""
        k, d = self.mean.shape
        matrix = np.zeros((k, d + 1, d + 1))
        matrix[:, :d, :d] = G
        matrix[:, :d, d] = -np.einsum("kij,kj->ki", G, self.mean)
        matrix[:, d, d] = 1.0
        log_det = np.log(np.abs(np.diagonal(R, axis1=1, axis2=2))).sum(axis=1)
        return _Pattern(matrix, (-log_det - 0.5 * R.shape[2] * LOG_2PI)[:, None], left)


def inverses(root: Array) -> Array:
    """The inverses of lower triangular matrices, all at once.

    A call of LAPACK for each would cost more: threads of the BLAS that wait for each other over a matrix of ten columns.
    """
    result = np.zeros_like(root)
    for i in range(root.shape[1]):
        result[:, i, i] = 1.0
        result[:, i, :i] = -np.einsum("kj,kji->ki", root[:, i, :i], result[:, :i, :i])
        result[:, i, : i + 1] /= root[:, i, i, None]
    return result


class SeparateNormals(ClassNormals):
    """Columns that are independent in each class. A missing cell adds nothing: Σ r is counted for each column."""

    @property
    def block_rows(self) -> int:
        return CELLS // self.mean.size

    @cached_property
    def _prepared(self) -> tuple[Array, Array, Array]:
        return self.mean[:, :, None], 1.0 / self.root[:, :, None], -np.log(self.root) - 0.5 * LOG_2PI

    def add_log_probs(self, block: Block, rows: slice, log_probs: Array) -> tuple[Array, Array | None]:
        mean, scale, constant = self._prepared
        x = self._fill_columns(np.empty((len(self.names), log_probs.shape[1])), block, rows)
        z = x - mean
        z *= scale
        seen = None
        if np.isnan(x.min()):
            lost = np.isnan(x)
            seen = (~lost).astype(np.float64)
            z[:, lost] = 0.0
            log_probs += constant @ seen
        else:
            log_probs += constant.sum(axis=1)[:, None]
        log_probs -= 0.5 * np.einsum("kdb,kdb->kb", z, z)
        return z, seen

    def gather(self, memory: tuple[Array, Array | None], responsibilities: Array) -> tuple[Array, Array, Array]:
        (z, seen), r = memory, responsibilities[:, :, None]
        N = np.repeat(r.sum(axis=1), len(self.names), axis=1) if seen is None else responsibilities @ seen.T
        return N, (z @ r)[:, :, 0], (z**2 @ r)[:, :, 0]


def logs(p: Array) -> Array:
    """ln p, with a finite number in place of ln 0."""
    return np.log(p, out=np.full_like(p, LOG_ZERO), where=p > 0.0)


class ClassParameters(NamedTuple):
    """The weights of the classes, and the parts."""

    weights: Array
    parts: tuple[Any, ...]

    def permute(self, order: Sequence[int]) -> ClassParameters:
        """The same, the classes in another order."""
        return ClassParameters(self.weights[list(order)], tuple(part.permute(order) for part in self.parts))


class ClassSums(NamedTuple):
    """What a pass over the rows adds up: ln p(rows), ln p(rows, most probable classes) − ln p(rows), the weight of each class,
    and the parts' statistics."""

    log_likelihood: float
    hard: float
    counts: Array
    parts: tuple[Any, ...]


class ImpossibleRow(DataError):
    """A row that no class can have, by the number of its block and its place there."""

    def to_error(self, data: Data) -> DataError:
        """The same for a person."""
        why = "has the probability 0 in every class: a state or count there was never seen in any class; use a prior"
        return DataError(f"{data.place(*self.args)} {why}")


@dataclass(frozen=True, eq=False)
class ScoredClasses:
    """The parts and weights of classes in a pass over rows. `label` is a column that shows the class of some rows."""

    parts: tuple[Any, ...]
    log_weights: Array
    label: str | None = None

    @classmethod
    def of(cls, theta: ClassParameters, label: str | None = None) -> ScoredClasses:
        """What parts find out about their parameters is kept with copies of them, and goes with the pass."""
        return cls(tuple(replace(part) for part in theta.parts), logs(theta.weights)[:, None], label)

    def log_joint(self, block: Block) -> Iterator[tuple[slice, Array, list[Any]]]:
        """Of a few rows at a time: ln w_k p(row | k), one row per class, and what the parts remember."""
        size = int(np.clip(min(part.block_rows for part in self.parts), 64, 8192))
        for start in range(0, block.n_rows, size):
            rows = slice(start, min(start + size, block.n_rows))
            log_probs = np.repeat(self.log_weights, rows.stop - start, axis=1)
            memory = [part.add_log_probs(block, rows, log_probs) for part in self.parts]
            if self.label is not None:
                own = block.columns[self.label][rows]
                log_probs[(own < len(log_probs)) & (np.arange(len(log_probs))[:, None] != own)] = -np.inf
            yield rows, log_probs, memory


@dataclass(frozen=True, eq=False)
class ExpectedClasses(Step[ClassSums]):
    """The E-step; or the sums that other responsibilities give, class × row of a block, by a function that pickles."""

    classes: ScoredClasses
    responsibilities: Callable[[Block], Array] | None = None

    def of(self, block: Block) -> ClassSums:
        total, given = None, None if self.responsibilities is None else self.responsibilities(block)
        for rows, log_probs, memory in self.classes.log_joint(block):
            top, sums = softmax(log_probs)
            log_sums, weight = np.log(sums), None if block.weight is None else block.weight[rows]
            counted = top if weight is None else np.where(weight > 0, top, 0.0)
            if counted.min() < IMPOSSIBLE:
                raise ImpossibleRow(block.number, rows.start + int(np.argmin(counted)))
            if given is not None:
                log_probs[:] = given[:, rows]
            if weight is not None:
                log_probs *= weight
            pairs = zip(self.classes.parts, memory, strict=True)
            parts = tuple(part.gather(m, log_probs) for part, m in pairs)
            one = ClassSums(_dot(top + log_sums, weight), -_dot(log_sums, weight), log_probs.sum(axis=1), parts)
            total = one if total is None else add_up(total, one)
        return total  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class ClassPosterior:
    """p(class | row) of the rows of a block, row × class, and ln p(row); −inf where a row is impossible, unless refused."""

    classes: ScoredClasses
    counts: tuple[str, ...] = ()
    refuse: bool = False

    def __call__(self, block: Block) -> tuple[Array, Array]:
        r, log_p = np.empty((block.n_rows, len(self.classes.log_weights))), np.empty(block.n_rows)
        for rows, log_probs, _ in self.classes.log_joint(block):
            top, sums = softmax(log_probs)
            if self.refuse and top.min() < IMPOSSIBLE:
                raise ImpossibleRow(block.number, rows.start + int(np.argmin(top)))
            r[rows], log_p[rows] = log_probs.T, np.where(top < IMPOSSIBLE, -np.inf, top + np.log(sums))
        for name in self.counts:
            log_p -= log_factorial(np.nan_to_num(block.columns[name]))
        return r, log_p


@dataclass(frozen=True, eq=False)
class ClassLogLikelihood(Step[float]):
    """Σ ln p(row), −inf where a row is impossible."""

    posterior: ClassPosterior

    def of(self, block: Block) -> float:
        log_p, some = self.posterior(block)[1], block.weights > 0.0
        return float((log_p[some] * block.weights[some]).sum())


@dataclass(frozen=True, eq=False)
class ClassComponents:
    """Rows with a hidden class, as components (`suffice.incomplete.components`) whose rows each expectation passes over.

    `base` is Σ −ln x! of the counts; `label` a column that shows the class of some rows.
    """

    data: Data
    base: float
    label: str | None = None
    threads: int | None = None

    def expect(self, theta: ClassParameters, given: Callable[[Block], Array] | None = None) -> ClassSums:
        """What all rows are expected to count, or do with the responsibilities that are given, and their ln p. Rows that are
        impossible under the parameters are refused."""
        try:
            step = ExpectedClasses(ScoredClasses.of(theta, self.label if given is None else None), given)
            sums = self.data.fold(step, threads=self.threads)
        except ImpossibleRow as error:
            raise error.to_error(self.data) from None
        return sums._replace(log_likelihood=sums.log_likelihood + self.base)


def softmax(log_probs: Array) -> tuple[Array, Array]:
    """Turn ln p(k, row), one row per class, into p(k | row) in place; the largest ln p of each row, and Σ p over it."""
    top = log_probs.max(axis=0)
    log_probs -= top
    np.exp(log_probs, out=log_probs)
    sums = log_probs.sum(axis=0)
    log_probs /= sums
    return top, sums


def _dot(x: Array, weight: Array | None) -> float:
    return float(x.sum() if weight is None else x @ weight)
