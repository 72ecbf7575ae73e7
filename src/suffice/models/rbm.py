"""Restricted Boltzmann machines: hidden bits that explain the columns of a table, and what one asks of them.

    p(v, h) = e^{−E(v, h)} / Z       −E(v, h) = Σᵢ φᵢ(vᵢ) + Σⱼ φⱼ(hⱼ) + Σᵢⱼ vᵢ Wᵢⱼ hⱼ

with φᵢ(vᵢ) = aᵢ vᵢ and φⱼ(hⱼ) = cⱼ hⱼ. Given one layer, the units of the other are independent: p(hⱼ = 1 | v) is the logistic
function of cⱼ + Σᵢ vᵢ Wᵢⱼ. `models.undirected.visible` says which units the columns have; a number is normal given h, with
variance 1 in the scale of its unit. Smolensky 1986; Hinton 2002, Neural Computation 14, p. 1771.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.basis.blas import one_blas_thread
from suffice.basis.libraries import pa
from suffice.basis.output.display import Rows, Tabular, and_more
from suffice.basis.variables import Finite, Variable, by_name
from suffice.errors import FitError, ModelError, TooLarge, quantity, whole
from suffice.models.rows.frames import arrow_columns, table
from suffice.models.undirected.visible import ROWS, OfUnits, VisibleColumns, checked_memory
from suffice.numerics.inference.finite.network import Array
from suffice.numerics.inference.sampling.boltzmann import AIS, MAX_STATES, LogNormaliser, Machine, key_of
from suffice.statistics.counts import freeze

if TYPE_CHECKING:
    import pyarrow as pa

    from suffice.basis.argument_types import RowsLike


class RBM(Tabular):
    """A restricted Boltzmann machine. `rbm` learns one from data; this makes one from numbers.

    `weights` has a row for each visible unit (`units` names them) and a column for each hidden one. `centre` and `scale` are
    those of the real columns. `base` are the visible biases of independent columns, as far as they are known, from which `AIS`
    starts.

    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> machine = RBM([x, y], [[2.0], [2.0]], [-1.0, -1.0], [0.0])
    >>> machine
    RBM of 2 columns, 2 visible units and 1 hidden unit; given by hand
      column  type      units
      ──────  ────────  ─────
      x       2 states  1
      y       2 states  1
    >>> machine.log_prob({"x": ["yes", "no"], "y": ["yes", "yes"]}).round(6)
    array([-0.735301, -1.626523])
    """

    file_kind: ClassVar[str] = "rbm"

    _lines, _indent = 20, "  "

    def __init__(
        self,
        variables: Mapping[str, Variable] | Iterable[Variable],
        weights: npt.ArrayLike,
        visible_biases: npt.ArrayLike,
        hidden_biases: npt.ArrayLike,
        *,
        centre: npt.ArrayLike | None = None,
        scale: npt.ArrayLike | None = None,
        base: npt.ArrayLike | None = None,
        fit_info: str = "given by hand",
    ) -> None:
        columns = VisibleColumns.of(by_name(variables))
        n, n_hidden, n_numbers = columns.units.n, np.size(hidden_biases), columns.units.n_numbers
        W = _numbers(weights, (n, n_hidden), "weights")
        a, c = _numbers(visible_biases, (n,), "visible_biases"), _numbers(hidden_biases, (n_hidden,), "hidden_biases")
        if not n_hidden:
            raise ModelError("a machine has at least one hidden unit")
        middle = np.zeros(n_numbers) if centre is None else _numbers(centre, (n_numbers,), "centre")
        spread = np.ones(n_numbers) if scale is None else _numbers(scale, (n_numbers,), "scale")
        if not (spread > 0).all():
            raise ModelError("the scales of a machine are positive numbers")
        self._columns = columns.rescale(middle, spread)
        self._machine = Machine(columns.units, W, a, c, None if base is None else _numbers(base, (n,), "base"))
        self._fit_info = fit_info

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The columns."""
        return MappingProxyType(dict(self._columns.variables))

    @property
    def weights(self) -> Array:
        """W: visible units × hidden units."""
        return self._machine.weights

    @property
    def visible_biases(self) -> Array:
        """a, one for each visible unit."""
        return self._machine.visible

    @property
    def hidden_biases(self) -> Array:
        """c, one for each hidden unit."""
        return self._machine.hidden

    @property
    def centre(self) -> Array:
        """What is subtracted from each real column,"""
        return self._columns.centre

    @property
    def scale(self) -> Array:
        """and by what it is divided then."""
        return self._columns.scale

    @property
    def base(self) -> Array | None:
        """The visible biases that the columns would have if they were independent; None if no rows told."""
        return self._machine.base

    @property
    def units(self) -> tuple[str, ...]:
        """The names of the visible units: columns with their states, and real columns."""
        return self._columns.names

    @cached_property
    def hidden_units(self) -> tuple[str, ...]:
        """The names of the hidden units: the columns of `transform`."""
        return tuple(f"h{j}" for j in range(len(self.hidden_biases)))

    @property
    def n_parameters(self) -> int:
        """The numbers that the machine has."""
        return self.weights.size + self.visible_biases.size + self.hidden_biases.size

    @property
    def fit_info(self) -> str:
        """How it came about, in a sentence."""
        return self._fit_info

    @one_blas_thread
    def free_energy(self, rows: RowsLike) -> Array:
        """F(v) = −ln Σ_h e^{−E(v, h)} of each row: p(v) = e^{−F(v)} / Z in the scale of the units.

        >>> machine = RBM([Finite("x", ["no", "yes"])], [[0.0]], [1.0], [0.0])
        >>> machine.free_energy({"x": ["yes", "no"]}).round(6)
        array([-1.693147, -0.693147])
        """
        return self._answer_rows(rows, self._machine.free_energy, ())

    @one_blas_thread
    def transform(self, rows: RowsLike) -> Any:
        """p(hⱼ = 1 | row) of each row: a column for each hidden unit, in the kind of frame that came in.

        >>> machine = RBM([Finite("x", ["no", "yes"])], [[2.0]], [0.0], [-1.0])
        >>> machine.transform({"x": ["yes", "no"]})["h0"].round(6)
        array([0.731059, 0.268941])
        """
        return table(rows, self.hidden_units, self._answer_rows(rows, self._hidden_means, (len(self.hidden_biases),)))

    @one_blas_thread
    def reconstruct(self, rows: RowsLike) -> Any:
        """What the hidden units, at their means given a row, expect of it: a column for each visible unit, probabilities of
        states and the means of numbers.

        >>> machine = RBM([Finite("x", ["no", "yes"])], [[2.0]], [0.0], [-1.0])
        >>> machine.reconstruct({"x": ["yes", "no"]})["x=yes"].round(6)
        array([0.811856, 0.63132 ])
        """
        return table(rows, self.units, self._answer_rows(rows, self._reconstruction, (len(self.units),)))

    def _hidden_means(self, v: Array) -> Array:
        return self._machine.hidden_units.means(v @ self.weights + self.hidden_biases)

    def _reconstruction(self, v: Array) -> Array:
        out = self._machine.units.means(self._hidden_means(v) @ self.weights.T + self.visible_biases)
        n = self._machine.units.n_finite
        out[:, n:] = self._columns.in_their_units(out[:, n:])
        return out

    def _answer_rows(self, rows: Any, answer: Callable[[Array], Array], shape: tuple[int, ...]) -> Array:
        """An answer for each row, from its units."""
        data = self._columns.rows(rows)
        checked_memory(data.n_rows, max((1, *shape)), "answers")
        return np.concatenate([np.empty((0, *shape)), *data.map(OfUnits(self._columns, answer))])

    @one_blas_thread
    def log_normaliser(self, method: AIS | None = None, *, seed: int = 0) -> LogNormaliser:
        """ln Z with its standard error: (value, error). Without a method, exactly, by a sum over the smaller layer.

        That layer may have 20 units at most (2²⁰ states); `AIS(chains, temperatures)` estimates ln Z of larger machines.

        >>> machine = RBM([Finite("x", ["no", "yes"])], [[0.0]], [0.0], [0.0])
        >>> round(machine.log_normaliser().value, 6)
        1.386294
        """
        if method is not None and not isinstance(method, AIS):
            raise FitError(f"the method of log_normaliser is AIS(chains, temperatures), not {method!r}")
        if method is not None:
            return method.log_normaliser(self._machine, whole(seed, "a seed", 0))
        if self._machine.n_summed > MAX_STATES:
            smaller = min(len(self.units), len(self.hidden_biases))
            raise TooLarge(
                f"ln Z is a sum over the states of the smaller layer, which has {smaller:,} units; up to 20 are summed over: "
                "method=AIS(chains=100, temperatures=1000) estimates it with a standard error"
            )
        return LogNormaliser(self._log_partition, 0.0)

    @cached_property
    def _log_partition(self) -> float:
        return self._machine.log_partition()

    def log_prob(self, rows: RowsLike, *, method: AIS | None = None, seed: int = 0) -> Array:
        """ln p(row) of each row, hidden units summed out, a density where there are real columns; ln Z as `log_normaliser` has
        it.

        >>> machine = RBM([Finite("x", ["no", "yes"])], [[0.0]], [1.0], [0.0])
        >>> np.exp(machine.log_prob({"x": ["yes", "no"]})).round(6)
        array([0.731059, 0.268941])
        """
        shift = self.log_normaliser(method, seed=seed).value + float(np.log(self.scale).sum())
        return -self.free_energy(rows) - shift

    @one_blas_thread
    def log_likelihood(self, data: RowsLike, *, method: AIS | None = None, seed: int = 0) -> float:
        """Σ ln p(row) over the data, each row as often as its weight says; ln Z as `log_normaliser` has it.

        >>> machine = RBM([Finite("x", ["no", "yes"])], [[0.0]], [1.0], [0.0])
        >>> round(machine.log_likelihood({"x": ["yes", "no"]}), 6)
        -1.626523
        """
        rows = self._columns.rows(data)
        shift = self.log_normaliser(method, seed=seed).value + float(np.log(self.scale).sum())
        return -float(rows.fold(OfUnits(self._columns, self._machine.free_energy).total)) - shift * rows.weight

    @one_blas_thread
    def sample(self, n: int, seed: int = 0, *, steps: int = 1000) -> pa.Table:
        """n rows as an Arrow table: the visible units of as many chains after so many rounds of Gibbs sampling, each layer drawn
        given the other. The chains start at rows that are drawn without regard to the hidden units.

        >>> machine = RBM([Finite("x", ["no", "yes"])], [[0.0]], [50.0], [0.0])
        >>> machine.sample(2, steps=1)["x"].to_pylist()
        ['yes', 'yes']
        """
        n, seed, steps = whole(n, "the number of rows", 0), whole(seed, "a seed", 0), whole(steps, "the number of steps", 1)
        checked_memory(n, len(self.units), "draws")
        units, (_, a, _) = self._machine.units, self._machine.floats
        blocks = []
        for start in range(0, n, ROWS):
            v = np.empty((min(ROWS, n - start), units.n), np.float32)
            own = int(np.random.SeedSequence([seed, start]).generate_state(1, np.uint64)[0])
            units.draw(np.zeros_like(v), a, key_of(own, 0), v)
            self._machine.walk(v, steps, own, 1)
            blocks.append(v)
        states = np.concatenate([np.empty((0, units.n), np.float32), *blocks])
        return pa.table(arrow_columns(self.variables, self._columns.decode(states)))

    def __eq__(self, other: object) -> bool:
        """Same columns, same numbers."""
        if not isinstance(other, RBM):
            return NotImplemented
        arrays = ("weights", "visible_biases", "hidden_biases", "centre", "scale")
        same = self.variables == other.variables and list(self.variables) == list(other.variables)
        return same and all(np.array_equal(getattr(self, a), getattr(other, a)) for a in arrays)

    __hash__ = None  # type: ignore[assignment]

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        facts: list[list[object]] = []
        for name, v in list(self.variables.items())[:limit]:
            kind, n = (quantity(v.n_states, "state"), v.n_states) if isinstance(v, Finite) else (type(v).__name__.lower(), 1)
            facts.append([name, kind, n if n > 2 else 1 if n == 2 or not isinstance(v, Finite) else 0])
        return [(["column", "type", "units"], facts)], and_more(len(self.variables) - limit, "column")

    def _headline(self) -> str:
        layers = f"{quantity(len(self.units), 'visible unit')} and {quantity(len(self.hidden_biases), 'hidden unit')}"
        return f"RBM of {quantity(len(self.variables), 'column')}, {layers}; {self._fit_info}"


def _numbers(array: Any, shape: tuple[int, ...], name: str) -> Array:
    """A read-only array of finite numbers of this shape."""
    try:
        own = np.array(array, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"the {name} of a machine are numbers, not {array!r}") from None
    if own.shape != shape:
        raise ModelError(f"the {name} of this machine have the shape {shape}, not {own.shape}")
    if not np.isfinite(own).all():
        raise ModelError(f"the {name} of a machine are finite numbers")
    return freeze(own)
