"""The kinds of covariance that a class of a mixture may have. What is not said of a column follows from its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from suffice.errors import FitError, nearest
from suffice.variables import Count, Finite, Variable


@dataclass(frozen=True)
class Full:
    """Each class has a covariance matrix of its own.

    >>> Full()
    Full()
    """


@dataclass(frozen=True)
class Tied:
    """All classes have the same covariance matrix.

    >>> Tied()
    Tied()
    """


@dataclass(frozen=True)
class Diagonal:
    """Each class has a variance of its own for each column; within a class the columns are independent.

    >>> Diagonal()
    Diagonal()
    """


@dataclass(frozen=True)
class Spherical:
    """Each class has one variance, the same for all columns; within a class the columns are independent.

    >>> Spherical()
    Spherical()
    """


Kind = Full | Tied | Diagonal | Spherical
KINDS = (Full, Tied, Diagonal, Spherical)


def groups(families: Any, variables: Mapping[str, Variable]) -> dict[Kind, tuple[str, ...]]:
    """The real columns by their kind: those of a kind have one distribution together.

    >>> from suffice.variables import Real
    >>> groups({"x": Tied()}, {"x": Real("x"), "y": Real("y")})
    {Tied(): ('x',), Full(): ('y',)}
    """
    reals = [n for n, v in variables.items() if not isinstance(v, (Finite, Count))]
    overall = Full() if families is None or isinstance(families, Mapping) else families
    said = dict(families) if isinstance(families, Mapping) else {}
    for kind in (overall, *said.values()):
        if not isinstance(kind, KINDS):
            raise FitError(f"a covariance is Full(), Tied(), Diagonal() or Spherical(), not {kind!r}")
    for name, kind in said.items():
        if name not in variables:
            raise FitError(f"families speaks of {name!r}, which is not a column of the data{nearest(str(name), variables)}")
        if name not in reals:
            what = type(variables[name]).__name__
            raise FitError(f"families gives {name!r} the covariance {kind!r}, but it is {what}: only Real columns have one")
    result: dict[Kind, tuple[str, ...]] = {}
    for name in reals:
        kind = said.get(name, overall)
        result[kind] = (*result.get(kind, ()), name)
    return result
