"""Tables: p(x | u) = θ[u, x] for a finite child x and finite parents u.

    statistic     N[u, x], the counts
    estimate      θ = N / Σₓ N                        (maximum likelihood)
                  θ = (N + α) / Σₓ (N + α)            (posterior mean)
                  θ = (N + α − 1) / Σₓ (N + α − 1)    (posterior mode)
    prior         θ[u, ·] ~ Dirichlet(α[u, ·]), independent over u: α are imagined counts
    evidence      Σᵤ [ln Γ(αᵤ) − ln Γ(αᵤ + Nᵤ) + Σₓ ln Γ(α + N) − ln Γ(α)]

Heckerman, Geiger & Chickering 1995, Machine Learning 20, p. 197.

Families of states that have fewer parameters than a table, a noisy-or, say, or a softmax, take the same statistic; their estimate
is the table θ of the family that maximises Σ (N + α) ln θ, and their evidence has no closed form. There is none in the package:
what others add says its `word`, its number of parameters and the table that counts give (docs/own_pieces.md). It rides on the
variable of its node (`Finite.family`), so that whoever asks `family_of` is told of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Ints
from suffice.basis.registry import Named, find, not_known
from suffice.basis.variables import Finite, Variable
from suffice.errors import FitError, ModelError, note
from suffice.errors.remedies import BDEU, BY_BIC, BY_MEAN
from suffice.families.parameter_draws import DrawnTable
from suffice.families.protocol.family import Array, Columns, Cpd, Estimate, Interval, Mean, Mode, PriorBelief, flat_index
from suffice.numerics.exponential.arithmetic.special import log_gamma_step
from suffice.numerics.exponential.dirichlet import beta_interval, shares_of
from suffice.statistics import Counts, Request
from suffice.statistics.counts import checked_cells, describe, n_configurations, sizes


@dataclass(frozen=True)
class TableNode:
    """The family of tables."""

    iterative: ClassVar[bool] = False
    normal: ClassVar[bool] = False

    def needs(self, child: Variable, parents: Sequence[Variable]) -> Request:
        return Request((*(p.name for p in parents), child.name))

    def n_parameters(self, child: Any, parents: Sequence[Any]) -> int:
        return n_configurations(parents) * (int(child.n_states) - 1)

    def log_likelihood(self, child: Any, seen: Counts) -> float:
        """Σ N ln(N / Nᵤ): the log-likelihood at its maximum."""
        keys, N = seen.listed()
        _, inverse, N_u = _rows(keys, N, child.n_states)
        return math.fsum((N * (np.log(N) - np.log(N_u[inverse]))).tolist())  # exact, for any order of the states

    def log_evidence(self, child: Any, seen: Counts, imagined: Counts | PriorBelief) -> float:
        """The log-probability of the data with the parameters integrated out. An unseen configuration adds nothing."""
        if not isinstance(imagined, Counts):
            return float(imagined.log_evidence(child, seen))
        keys, N = seen.listed()
        rows, _, N_u = _rows(keys, N, child.n_states)
        alpha = imagined.at(keys)
        alpha_u = imagined.marginal(imagined.names[:-1]).at(rows)
        if np.any(alpha <= 0):
            cell = describe(int(keys[np.argmin(alpha)]), seen.variables)
            raise FitError(f"the prior of {child.name!r} rules out {cell}, which the data holds: the evidence is zero")
        return float(log_gamma_step(alpha, N).sum() - log_gamma_step(alpha_u, N_u).sum())

    def estimate(
        self, child: Any, parents: Sequence[Any], seen: Counts, imagined: Counts | PriorBelief | None, how: Estimate
    ) -> Table:
        parents = tuple(parents)
        checked_cells((*parents, child), f"the table of {child.name!r}")
        if imagined is not None and not isinstance(imagined, Counts):
            return Table(child, parents, imagined.probs(seen, how), seen, imagined)
        N = seen.dense()
        weights = N if imagined is None else (seen + imagined).dense()
        if imagined is not None and isinstance(how, Mode):
            if np.any(weights < 1.0):
                cell = describe(int(np.argmin(weights)), seen.variables)
                raise FitError(
                    f"the posterior of {child.name!r} has no mode: count and prior at {cell} make {weights.min():g}, below 1; "
                    f"use {BY_MEAN} or a stronger prior"
                )
            weights = weights - 1.0
        return Table(child, parents, shares_of(weights), seen, imagined)


@dataclass(frozen=True, eq=False, repr=False)
class Table(Cpd):
    """p(child | parents) as a table, child on the last axis; `seen` and `imagined` are the counts it was fitted from.

    With a prior that is not conjugate `imagined` is what it believes of the rows.

    >>> Table(Finite("y", ["a", "b"]), (), [0.25, 0.75])
    p(y)
    y=a   y=b
    ────  ────
    0.25  0.75
    """

    child: Finite
    parent_variables: tuple[Finite, ...]
    probs: Array
    seen: Counts | None = None
    imagined: Counts | PriorBelief | None = None

    types: ClassVar[tuple[str, ...]] = ("table",)
    children: ClassVar[Any] = Finite
    arrays: ClassVar[tuple[str, ...]] = ("probs",)
    marks_unseen: ClassVar[bool] = True

    def __post_init__(self) -> None:
        probs = np.array(self.probs, dtype=np.float64, order="C")
        shape = (*sizes(self.parent_variables), self.child.n_states)
        if probs.shape != shape:
            names = [*self.parents, self.child.name]
            raise ModelError(f"the table of {self.child.name!r} needs the shape {shape} (axes {names}), not {probs.shape}")
        object.__setattr__(self, "parent_variables", tuple(self.parent_variables))
        rows = probs.reshape(-1, self.child.n_states)
        sums = rows.sum(axis=1)
        if (rows < 0.0).any() or not (np.abs(sums - 1.0) <= 1e-6).all():  # what is not finite has no sum near 1
            wrong = ~np.isfinite(rows) | (rows < 0.0)
            i = int(np.argmax(wrong.any(axis=1) | ~(np.abs(sums - 1.0) <= 1e-6)))
            where = f" at {describe(i, self.parent_variables)}" if self.parent_variables else ""
            values = ", ".join(f"{v:g}" for v in rows[i][:8])
            problem = "are not all probabilities" if wrong[i].any() else f"sum to {sums[i]:.9g}, not 1"
            raise ModelError(f"the numbers of {self.child.name!r}{where} {problem}: {values}")
        off = np.abs(sums - 1.0) > 1e-12
        if off.any():  # each row sums to 1 up to 1e-6; what is left is scaled away, with a note
            rows[off] /= sums[off, None]
        if np.abs(sums - 1.0).max() > 1e-9:
            note(f"{int(off.sum())} rows of the table of {self.child.name!r} were divided by their sum, which was not exactly 1")
        probs.setflags(write=False)
        object.__setattr__(self, "probs", probs)
        if self.child.family is not None:  # what is imagined makes a posterior of cells, not of its parameters
            object.__setattr__(self, "imagined", None)

    @property
    def family(self) -> TableNode:
        return self.child.family or TableNode()

    @property
    def support(self) -> Array | None:
        """For each configuration of the parents: how many rows had it, or their weight. One axis per parent."""
        return None if self.seen is None else np.asarray(self.seen.dense().sum(axis=-1))

    def interval(self, level: float = 0.95) -> Interval:
        """The credible interval of each probability: quantiles of its Beta(α + N, Σ − α − N).

        With a logistic-normal prior: quantiles of weighted draws, always the same.
        """
        if self.seen is not None and self.imagined is not None and not isinstance(self.imagined, Counts):
            found: Interval = self.imagined.interval(self.seen, level)
            return found
        alpha = self.posterior().dense()
        return beta_interval(alpha, alpha.sum(axis=-1, keepdims=True) - alpha, level)

    def predictive(self, given: Mapping[str, object] | None = None) -> Array:
        """The distribution of the next child, given its parents: with a posterior its mean, whatever the point values are."""
        row = self.configuration(given or {})
        probs = self.probs
        if self.seen is not None and self.imagined is not None:
            conjugate = isinstance(self.imagined, Counts)
            probs = self.posterior().dense() if conjugate else self.imagined.probs(self.seen, Mean())  # type: ignore[union-attr]
        own = probs.reshape(-1, self.child.n_states)[row]
        return np.asarray(own / own.sum())

    def log_likelihood(self, statistic: Counts) -> float:
        """Σ N ln θ, from counts alone; −inf where the data holds what the table rules out."""
        keys, N = statistic.listed()
        with np.errstate(divide="ignore"):
            return math.fsum((N * np.log(self.probs.reshape(-1)[keys])).tolist())  # exact, for any order of the states

    def log_prob(self, columns: Columns) -> Array:
        child = columns[self.child.name]
        with np.errstate(divide="ignore"):
            table = np.log(self.probs.reshape(-1, self.child.n_states))
        return np.asarray(table[flat_index(columns, self.parent_variables, len(child)), child])

    def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]:
        """Codes of the child for n rows whose parents are in `columns`."""
        from suffice.numerics.kernels.counting.count import draw_codes

        r = self.child.n_states
        ends = np.cumsum(self.probs.reshape(-1, r), axis=1)
        ends /= ends[:, -1:]
        out = np.empty(n, dtype=np.int32)
        draw_codes(ends, flat_index(columns, self.parent_variables, n), rng.random(n), out)
        return out

    def entropy(self, marginal: Callable[[Sequence[str]], Array]) -> float:
        weights = marginal([*self.parents, self.child.name])
        held = weights > 0
        return -float(weights[held] @ np.log(self.probs[held]))

    def perturb(self, parent: str, rng: np.random.Generator) -> Table:
        drawn = rng.dirichlet(np.ones(self.child.n_states), self.probs.shape[:-1])
        return Table(self.child, self.parent_variables, 0.8 * self.probs + 0.2 * drawn)

    def _draw_parameters(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        number = {name: i for i, name in enumerate((*self.parents, self.child.name))}
        return {"probs": DrawnTable(self, number, {}).draw(n, rng).reshape(n, *self.probs.shape)}

    def to_dict(self) -> dict[str, Any]:
        """The table, and the family that was chosen for it."""
        chosen = self.child.family
        return super().to_dict() | ({} if chosen is None else {"family": chosen.to_dict()})

    @classmethod
    def variable_of(cls, d: Mapping[str, Any], variable: Variable) -> Variable:
        if "family" not in d or not isinstance(variable, Finite):
            return variable
        kind = find("families", d["family"]["type"])
        if kind is None:
            raise not_known(f"the family {d['family']['type']!r} of {variable.name!r}")
        return replace(variable, family=kind(**{k: x for k, x in d["family"].items() if k != "type"}))

    def to_frame(self) -> Any:
        """One row per cell: the parents' states, the child's, the probability, its 95 % interval where there is one."""
        return self._frame("probability", self.probs, (*self.parent_variables, self.child))

    _unit: ClassVar[str] = "probability"

    def _numbers(self, limit: int) -> tuple[list[str], list[list[object]]]:
        most, states = 12, self.child.states
        rows = [list(map(float, row[:most])) for row in self.probs.reshape(-1, len(states))[:limit]]
        more = [f"and {len(states) - most} more states"] if len(states) > most else []
        return [*(f"{self.child.name}={s}" for s in states[:most]), *more], [[*row, *("…" for _ in more)] for row in rows]


def _rows(keys: Ints, values: Array, n_states: int) -> tuple[Ints, npt.NDArray[np.intp], Array]:
    """The parents' configurations among these cells: their indices, which of them each cell belongs to, their totals."""
    rows, inverse = np.unique(keys // n_states, return_inverse=True)
    return rows, inverse, np.bincount(inverse, values, len(rows)).astype(np.float64)


class FiniteFamily(TableNode, Named):
    """What a family of states has to say: `n_parameters(child, parents)` and `probs(child, parents, counts)`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Same(FiniteFamily):
    ...     "One distribution, whatever the parents are."
    ...     def n_parameters(self, child, parents):
    ...         return child.n_states - 1
    ...     def probs(self, child, parents, counts):
    ...         return counts.sum(axis=tuple(range(len(parents)))) / counts.sum() + 0.0 * counts
    >>> x, y = Finite("x", ["a", "b"]), Finite("y", ["a", "b"], family=Same())
    >>> y.family.estimate(y, [x], Counts((x, y), [[3, 1], [0, 2]]), None, None).probs[0]
    array([0.5, 0.5])
    """

    listed_in = "families"
    kind: ClassVar[Any] = Finite
    """What its child is, even if it is written in numbers."""
    trials: ClassVar[str | None] = None

    def probs(self, child: Finite, parents: Sequence[Finite], counts: Array) -> Array:
        """The table of this family under which these counts are most probable; an axis for each parent, the child's last."""
        raise NotImplementedError

    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int:
        """How many parameters it has, which scores pay for."""
        raise NotImplementedError

    def fit_table(self, child: Any, parents: Sequence[Any], counts: Array) -> Array:
        """The table that these counts give. Without parents, or rows, there is nothing to choose between."""
        return np.asarray(self.probs(child, parents, counts)) if parents and counts.sum() > 0 else shares_of(counts)

    def log_likelihood(self, child: Variable, seen: Counts) -> float:
        """The log-likelihood at its maximum."""
        parents = seen.variables[:-1]
        return Table(child, parents, self.fit_table(child, parents, seen.dense())).log_likelihood(seen)  # type: ignore[arg-type]

    def log_evidence(self, child: Variable, seen: Counts, imagined: Any) -> float:
        raise FitError(f"{child.name!r} is {self!r}, whose evidence has no formula: score it with {BY_BIC}")

    def estimate(self, child: Any, parents: Sequence[Any], seen: Counts, imagined: Any, how: Estimate) -> Table:
        """The table of this family for what was seen and imagined. Imagined rows count as rows, for modes less one a cell as
        in tables; they make no posterior of its parameters, so that it has no intervals."""
        if imagined is None:
            return Table(child, tuple(parents), self.fit_table(child, parents, seen.dense()), seen)
        if not isinstance(imagined, Counts):
            raise FitError(f"{child.name!r} is {self!r}, for which a prior has to imagine rows: use {BDEU}")
        weights = (seen + imagined).dense() - how.less
        if weights.min() < 0.0:
            raise FitError(
                f"the posterior of {child.name!r} has no mode: count and prior of a cell make {weights.min() + 1.0:g}, below 1; "
                f"use {BY_MEAN} or a stronger prior"
            )
        return Table(child, tuple(parents), self.fit_table(child, parents, weights), seen)

    def to_dict(self) -> dict[str, Any]:
        """The family as plain values, for JSON: its word and its fields."""
        return {"type": self.word.split()[0], **{f.name: getattr(self, f.name) for f in fields(self)}}
