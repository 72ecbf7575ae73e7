"""The columns that parents give a regression: the number of a real one, indicators of all states but one of a finite one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError
from suffice.families.family import Array, Columns
from suffice.variables import Finite, Variable

CELLS = 2**19
"""Numbers of a design that are held at once: 4 MiB. Smaller pieces would be in a nearer cache, but their calls cost more."""


def terms(parents: Sequence[Variable]) -> tuple[str, ...]:
    """The names of the columns that parents give a regression.

    >>> from suffice.variables import Real
    >>> terms([Real("x"), Finite("z", ["a", "b", "c"])])
    ('x', 'z=b', 'z=c')
    """
    return tuple(v.name if state is None else f"{v.name}={state}" for v, state in expanded(parents))


def expanded(parents: Sequence[Variable]) -> Iterator[tuple[Variable, str | None]]:
    """The parent, and its state if it is finite, of each column."""
    for v in parents:
        yield from ((v, s) for s in v.states[1:]) if isinstance(v, Finite) else ((v, None),)


def are_numbers(parents: Sequence[Variable]) -> npt.NDArray[np.bool_]:
    """Which of the columns are numbers."""
    return np.array([state is None for _, state in expanded(parents)], dtype=bool)


def columns_of(parents: Sequence[Variable], name: str) -> slice:
    """Where the columns of one parent are.

    >>> columns_of([Finite("z", ["a", "b", "c"]), Finite("u", ["a", "b"])], "u")
    slice(2, 3, None)
    """
    at = [v.name for v in parents].index(name)
    start = len(terms(parents[:at]))
    return slice(start, start + len(terms(parents[at : at + 1])))


def filled(parents: Sequence[Variable], columns: Columns, centre: Array, n: int, child: str, *, complete: bool = False) -> Array:
    """Xᵀ of n rows: a row of ones, then a row per column of the regression, numbers less their centre."""
    X = np.empty((1 + len(centre), n))
    X[0], j = 1.0, 1
    for v in parents:
        if isinstance(v, Finite):
            codes = codes_of(columns, v)
            np.equal(codes, np.arange(1, v.n_states)[:, None], out=X[j : j + v.n_states - 1], casting="unsafe")
            j += v.n_states - 1
        else:
            np.subtract(columns[v.name], centre[j - 1], out=X[j])
            if not complete and not np.isfinite(X[j].sum()) and not np.isfinite(X[j]).all():
                raise DataError(f"{v.name!r} has missing cells, and the regression of {child!r} needs its numbers")
            j += 1
    return X


def predicted(theta: Array, parents: Sequence[Variable], columns: Columns, centre: Array, n: int, child: str) -> Array:
    """θ X of n rows, a row for each row of θ, some rows of the design held at a time."""
    size = max(1, CELLS // theta.shape[-1])
    parts = [np.zeros((len(theta), 0))]
    for start in range(0, n, size):
        own = {v.name: columns[v.name][start : start + size] for v in parents}
        parts.append(theta @ filled(parents, own, centre, min(size, n - start), child))
    return np.concatenate(parts, axis=1)


def codes_of(columns: Columns, v: Finite) -> npt.NDArray[np.intp]:
    """Codes of states, of which none is missing."""
    codes = np.asarray(columns[v.name], dtype=np.intp)
    if codes.size and not 0 <= codes.min() <= codes.max() < v.n_states:
        raise DataError(f"{v.name!r} has missing cells, and a regression needs its states")
    return codes


def fixed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers, read-only: to the compiler these are another type, and a kernel has one signature."""
    view = array.view()
    view.flags.writeable = False
    return view


def shrunk(parents: Sequence[Variable]) -> Array:
    """P of the ridge ½ λ b P bᵀ, with a 0 for the intercept: 1 for a number, I − 11ᵀ/r among the indicators of r states, so that
    the effects of a parent's states are taken to sum to 0 and none of them is special.

    >>> shrunk([Finite("z", ["a", "b"])])
    array([[0. , 0. ],
           [0. , 0.5]])
    """
    P = np.zeros((1 + len(terms(parents)),) * 2)
    for v in parents:
        own = columns_of(parents, v.name)
        P[1:, 1:][own, own] = np.eye(v.n_states - 1) - 1.0 / v.n_states if isinstance(v, Finite) else 1.0
    return P
