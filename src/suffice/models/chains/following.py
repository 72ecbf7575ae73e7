"""Online filtering: a chain that takes one row at a time, and says what is hidden there given all rows so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import Count, Finite, Real, Variable
from suffice.engines.engine import Block, is_missing
from suffice.engines.sequences.sequences import sequences
from suffice.errors import DataError, ModelError, nearest, quantity
from suffice.families.protocol.family import Array
from suffice.incomplete.chains.reduced_steps import ShownPart, child_numbers, child_states
from suffice.models.chains.chain_parts import ChainParts
from suffice.models.chains.chain_reading import ChainReading, missing_in
from suffice.models.questions.answers import Distribution
from suffice.models.questions.densities import NormalParts, PoissonParts
from suffice.models.questions.mixture import Mixture
from suffice.statistics.counts import freeze

Cell = float | int


@dataclass(frozen=True, eq=False)
class Following:
    """A filter after some rows. `next` takes one more, and returns the filter after it with what it says of hidden variables.

    >>> from suffice import Chain
    >>> x, y = Finite("x", ["a", "b"]), Finite("y", ["u", "v"])
    >>> cpds = {"x": [[0.9, 0.1], [0.1, 0.9]], "x[0]": [0.5, 0.5], "y": [[0.8, 0.2], [0.2, 0.8]]}
    >>> chain = Chain("x[-1] -> x -> y", cpds, [x, y])
    >>> following, hidden = chain.follow().next({"y": "u"})
    >>> round(hidden["x"]["a"], 6)
    0.8
    >>> following, hidden = following.next({"y": "u"})
    >>> round(hidden["x"]["a"], 6), following.n_steps, round(following.log_prob, 6)
    (0.919255, 2, -1.133204)
    """

    chain: ChainParts
    n_steps: int = 0
    log_prob: float = 0.0
    """ln p of all rows so far."""
    _reading: ChainReading | None = None
    _recent: tuple[Mapping[str, Cell], ...] = ()
    _filter: Any = None

    @classmethod
    def of(cls, chain: ChainParts, hidden: Iterable[str] | None = None) -> Following:
        """Before the first row. `hidden` names the variables that rows may lack; by default those hidden when the chain was
        fitted or, if there were none, those that the first row lacks."""
        names = chain.hidden if hidden is None else tuple(hidden)
        for name in names:
            if name not in chain.variables:
                raise ModelError(f"the chain has no variable {name!r}{nearest(str(name), chain.variables)}")
        return cls(chain, _reading=_reading(chain, names) if names else None)

    def next(self, row: Mapping[str, Any]) -> tuple[Following, dict[str, Any]]:
        """The filter after one more row, {variable: value}; a variable that is left out, None or NaN is missing there."""
        cells = _encode_row(self.chain, row)
        reading = self._reading or _reading(self.chain, [n for n in self.chain.variables if n not in cells])
        may = {*cells, *reading.states, *reading.numbers, *reading.open}
        for name in (n for n in self.chain.variables if n not in may):
            if self.chain.template.window.children(name):
                raise DataError(
                    f"the row has no value of {name!r}, on which others depend; name it when you begin: follow(hidden=[{name!r}])"
                )
            if name in self.chain.template.lags:
                raise DataError(f"the row has no value of {name!r}, on which later steps depend: follow(hidden=[{name!r}])")
        recent = (*self._recent, cells)[-self.chain.order - 1 :]
        if reading.numbers:
            from suffice.models.chains.linear_answers import filter_on

            log_prob, filtered, answer = filter_on(reading, _block(reading, recent), self._filter)
        else:
            log_prob, filtered, answer = _states_on(reading, _block(reading, recent), self._filter)
        if log_prob == -np.inf:
            raise DataError(f"the row {dict(row)!r} is impossible at step {self.n_steps + 1} under the chain")
        after = replace(
            self,
            n_steps=self.n_steps + 1,
            log_prob=self.log_prob + log_prob,
            _reading=reading,
            _recent=recent[-self.chain.order :] if self.chain.order else (),
            _filter=filtered,
        )
        return after, answer

    def __repr__(self) -> str:
        return f"Following(after {quantity(self.n_steps, 'row')}, log p {self.log_prob:.6g}; {self.chain.template})"


def _reading(chain: ChainParts, hidden: Iterable[str]) -> ChainReading:
    """How rows are read that may lack these variables, and may show them."""
    row = {n: [v.states[0] if isinstance(v, Finite) else 0.0] for n, v in chain.variables.items()}
    return ChainReading.of(chain, sequences(row, variables=dict(chain.variables)), hidden=tuple(hidden))


def _encode_row(chain: ChainParts, row: Any) -> dict[str, Cell]:
    if not isinstance(row, Mapping):
        raise DataError(f"a row is given by variable, {{'y': 1.5}}, not as {type(row).__name__}")
    cells: dict[str, Cell] = {}
    for name, value in row.items():
        if name not in chain.variables:
            raise DataError(f"the chain has no variable {name!r}{nearest(str(name), chain.variables)}")
        if value is None or (isinstance(value, float) and np.isnan(value)):
            continue
        cells[name] = _cell(chain.variables[name], value)
    return cells


def _cell(variable: Variable, value: Any) -> Cell:
    if isinstance(variable, Finite):
        if variable.cuts is not None and isinstance(value, (int, float)):
            return int(np.searchsorted(variable.cuts, value, side="right"))
        return variable.code(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise DataError(f"{variable.name!r} is a number, not {value!r}") from None
    if not np.isfinite(number) or (not isinstance(variable, Real) and (number < 0 or number != int(number))):
        raise DataError(f"{value!r} is no value of {variable!r}")
    return number


def _block(reading: ChainReading, rows: tuple[Mapping[str, Cell], ...]) -> Block:
    """The last rows as a sequence: as many as make the phase of the last of them right."""
    columns: dict[str, npt.NDArray[Any]] = {}
    for name in reading.layout.shown:
        dtype: np.dtype[Any] = np.dtype(np.uint32 if isinstance(reading.chain.variables[name], Finite) else np.float64)
        columns[name] = np.array([row.get(name, missing_in(dtype)) for row in rows], dtype)
    return Block(columns, lengths=np.array([len(rows)]))


def _states_on(reading: ChainReading, block: Block, before: Array | None) -> tuple[float, Array, dict[str, Any]]:
    """ln p of the last row, the joint states after it, and what these say of each unknown variable."""
    missing = [n for n in reading.layout.shown if n not in reading.states and is_missing(block.columns[n])[-1]]
    log_prob, after, states, parts = reading.layout.rows(block).follow(reading.theta, before, missing)
    if log_prob == -np.inf:
        return log_prob, after, {}
    variables: Any = reading.chain.variables
    answer: dict[str, Any] = {n: Distribution.from_probs(variables[n], freeze(states[n]), {}) for n in reading.states}
    for name in missing:
        answer[name] = _child(reading, parts, block.n_rows - 1, name)
    return log_prob, after, answer


def _child(reading: ChainReading, states: Sequence[ShownPart], last: int, name: str) -> Any:
    """What the states of the last step say of a variable that is missing there, on which no other step depends."""
    variable = reading.chain.variables[name]
    if isinstance(variable, Finite):
        for some, probs in child_states(states, reading.theta, name):
            if last in some:
                return Distribution.from_probs(variable, freeze(probs[:, some == last][:, 0]), {})
    for some, parts in child_numbers(states, reading.theta, name):
        if last in some:
            weight, means, sds = (np.asarray(part)[:, some == last][:, 0] for part in parts)
            if isinstance(variable, Count):
                return Mixture((name,), weight, PoissonParts(means))
            return Mixture((name,), weight, NormalParts(means[:, None], (sds**2)[:, None, None]))
    raise ModelError(f"{name!r} is missing, and its {type(reading.chain[name]).__name__} does not say what it is expected to be")
