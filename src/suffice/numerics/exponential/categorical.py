"""The categorical distribution: p(x | p) = p_x, x one of k states. What it can do is in `draws`.

The states are 0, …, k − 1 unless they have names. η is the log-odds of each state to the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.basis.variables import Finite, Variable, state_text
from suffice.errors import DataError, ModelError, listing, nearest
from suffice.numerics.exponential.arithmetic.values import Array, Outside, checked_weights, hold, observations, plain, show
from suffice.numerics.exponential.draws import Draws, number_of_states
from suffice.numerics.exponential.protocol.family import ExponentialFamily, Inside
from suffice.numerics.exponential.protocol.observable import generator
from suffice.numerics.exponential.protocol.statistic import Totals


@dataclass(frozen=True, eq=False, repr=False)
class Categorical(Draws):
    """One of `k` states, with probabilities `probs`; x is its number from 0, or its name where `states` names them.

    The conjugate prior is `Dirichlet`. `mean` and `variance` are those of the indicators of the k states.

    >>> from suffice.exponential import Dirichlet
    >>> seen = Categorical(states=["red", "green", "blue"]).statistic(["red", "blue", "red"])
    >>> seen.family.estimate(seen).probs.round(3)
    array([0.667, 0.   , 0.333])
    >>> posterior = Dirichlet([1, 1, 1]) + Categorical(3).statistic([0, 2, 0])
    >>> posterior, posterior.predictive()
    (Dirichlet(alpha=[3.0, 1.0, 2.0], of=Categorical(k=3)), Categorical(probs=[0.5, 0.16666666666666666, 0.3333333333333333]))
    """

    k: Any = None
    probs: Any = None
    states: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        states = None if self.states is None else Finite("x", self.states).states
        k = len(states) if states is not None and self.k is None and self.probs is None else self.k
        k, probs = number_of_states(k, self.probs, "Categorical")
        if states is not None and len(states) != k:
            raise ModelError(f"Categorical has {k} probabilities and the {len(states)} states {listing(states)}")
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "probs", None if probs is None else hold(probs))
        object.__setattr__(self, "states", states)

    @classmethod
    def of(cls, variable: Finite) -> Self:
        """The family of a finite variable, without probabilities.

        >>> Categorical.of(Finite("light", ["red", "green"]))
        Categorical(states=['red', 'green'])
        """
        return cls(states=variable.states)

    @property
    def support(self) -> str:  # type: ignore[override]
        """What x may be, in words."""
        return f"the states {listing(self.states)}" if self.states else f"the states 0 to {self.k - 1}"

    @property
    def draws(self) -> float:
        return 1.0

    def with_probs(self, probs: Any) -> Self:
        return replace(self, k=None, probs=probs)

    def codes(self, x: Any) -> npt.NDArray[np.int64]:
        """The number of each state; −1 of what is none."""
        if self.states is None:
            numbers = observations(x, "Categorical")
            inside = (numbers >= 0.0) & (numbers < self.k) & (numbers == np.rint(numbers))
            return np.where(inside, numbers, -1.0).astype(np.int64)
        values = np.asarray(x)
        texts = np.array([state_text(v) for v in values.reshape(-1)]) if values.dtype == object else values.reshape(-1)
        distinct, inverse = np.unique(texts, return_inverse=True)
        known = {state: i for i, state in enumerate(self.states)}
        return np.array([known.get(state_text(d), -1) for d in distinct], np.int64)[inverse].reshape(values.shape)

    def sufficient(self, x: Any) -> Array:
        return np.asarray(self.codes(x)[..., None] == np.arange(self.k - 1), dtype=np.float64)

    log_base = ExponentialFamily.log_base

    def _inside(self, x: Any) -> Inside:
        """The number of each state, the first in place of what is none."""
        codes = self.codes(x)
        return np.maximum(codes, 0), codes >= 0

    def _log_density(self, codes: Any) -> Array:
        with np.errstate(divide="ignore"):
            logs = np.log(self._probs())
        codes = np.broadcast_to(codes, np.broadcast_shapes(codes.shape, logs.shape[:-1]))
        return np.asarray(np.take_along_axis(np.broadcast_to(logs, (*codes.shape, self.k)), codes[..., None], axis=-1)[..., 0])

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        p = self._need("probs")
        below = np.cumsum(p, axis=-1)[..., :-1] / p.sum(axis=-1, keepdims=True)
        codes = np.asarray((generator(n, seed).random((n, *p.shape[:-1]))[..., None] >= below).sum(axis=-1))
        return codes if self.states is None else np.array(self.states)[codes]

    def entropy(self) -> Any:
        """−Σ pᵢ ln pᵢ."""
        return plain(sc.entr(self._need("probs")).sum(axis=-1))

    def _predictive(self, prior: Any) -> Self:
        """The state of the next row: probabilities α/Σα."""
        return self.with_probs(prior.mean)

    def _totals(self, x: Any, weights: Any) -> Totals:
        codes = np.atleast_1d(self.codes(x))
        if np.any(codes < 0):
            where = tuple(np.argwhere(codes < 0)[0])
            value = np.atleast_1d(np.asarray(x))[where]
            raise Outside(f"Categorical is about {self.support}, and", int(where[0]), f"is {value!s}")
        return self._count_codes(codes, weights)

    def _count_codes(self, codes: npt.NDArray[Any], weights: Any) -> Totals:
        """Counted, not summed: the indicators of a thousand states would be a thousand times the data."""
        w = checked_weights(weights, codes.shape).reshape(-1)
        beside = int(np.prod(codes.shape[1:]))
        places = codes.reshape(len(codes), beside).astype(np.int64) + self.k * np.arange(beside)
        cells = np.bincount(places.reshape(-1), w, self.k * beside).reshape(*codes.shape[1:], self.k).astype(np.float64)
        return Totals(self.bare, cells.sum(axis=-1), cells[..., :-1], np.zeros(codes.shape[1:]))

    def _gather_cells(self, values: npt.NDArray[Any], weights: Any) -> Totals:
        return self._count_codes(values, weights) if values.dtype.kind in "iu" else self._totals(values, weights)

    def _meaning(self, variable: Variable) -> npt.NDArray[Any] | None:
        """A finite column by its states: by their names, or else in their order."""
        if not isinstance(variable, Finite):
            if self.states is not None:
                raise DataError(f"{variable.name!r} is a column of numbers, without states; declare it Finite")
            return super()._meaning(variable)
        if self.states is not None:
            lost = [s for s in variable.states if s not in self.states]
            if lost:
                raise DataError(
                    f"{variable.name!r} has the state {lost[0]!r}, which is not among those of Categorical, "
                    f"{listing(self.states)}{nearest(lost[0], self.states)}"
                )
            return np.array([self.states.index(s) for s in variable.states])
        if variable.n_states != self.k:
            raise DataError(
                f"{variable.name!r} has {variable.n_states} states, {listing(variable.states)}, and Categorical has {self.k}; "
                "make it of the variable: Categorical.of(data.schema[column])"
            )
        return None

    def __repr__(self) -> str:
        shown_states = "" if self.states is None else f"states=[{listing(self.states, 12)}]"
        probs = "" if self.probs is None else f"probs={show(self.probs)}"
        return f"Categorical({', '.join(p for p in (probs, shown_states) if p) or f'k={self.k}'})"
