"""Names for what public functions take, as type checkers see it: imported only by them, under `TYPE_CHECKING`.

What a library of frames, a user's own prior or a method of search has to have is said by protocols, so that this file stands
below all of them. `object` stands where anything may be found once one looks inside; the refusal of what is wrong is at run time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from suffice.basis.variables import Finite, Real, Variable

Path: TypeAlias = "str | os.PathLike[str]"


class TableLike(Protocol):
    """Rows with named columns: frames of pandas, polars and Spark, relations of DuckDB, and `Data`."""

    @property
    def columns(self) -> object: ...


class ArrowLike(Protocol):
    """Tables of Arrow, and all that is passed on as one."""

    def __arrow_c_stream__(self, *args: Any, **how: Any) -> object: ...


RowsLike: TypeAlias = "Path | Sequence[Path] | Mapping[str, object] | TableLike | ArrowLike | npt.NDArray[np.void]"
"""What `scan` takes. A column of a mapping is a list, an array or a series: a checker joins these to `object`."""

VariablesLike: TypeAlias = "Mapping[str, object] | Sequence[Variable]"
"""What `variables=` takes. By name: variables, their classes, `Bins`, lists of states, which a checker joins to `object`."""

HiddenLike: TypeAlias = "Finite | Real | Iterable[Finite | Real] | Mapping[str, Finite | Real | Sequence[str]]"
"""What `hidden=` takes: variables that no row shows, or their states by name."""

SeedLike: TypeAlias = "int | Sequence[int]"
"""What `seed=` of views takes: a number, or several that make one seed together."""

WeightsLike: TypeAlias = "str | Sequence[float] | Iterable[float]"
"""What `weights=` takes: the name of a column, or a number for each row."""

ColumnOfAnswers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.object_]] | np.ndarray[tuple[int], np.dtype[np.float64]]"
"""What `predict` returns of a dict of columns: states, or means. Of a frame it is a column of its library, which is not named."""

LagsLike: TypeAlias = "int | Mapping[str, int]"
"""What `lags=` takes: steps back for all columns, or for each."""

SharedLike: TypeAlias = "Iterable[Iterable[str] | Mapping[str, Sequence[str]]]"
"""What `shared=` takes: groups of nodes, or of nodes with their parents in order."""

SizesLike: TypeAlias = "int | Iterable[int]"
"""What `k=` takes: how many hidden states or numbers, or the sizes to choose from."""


class NetworkxLike(Protocol):
    """A graph of networkx."""

    @property
    def nodes(self) -> object: ...
    @property
    def edges(self) -> object: ...
    def is_directed(self, *args: Any, **how: Any) -> bool: ...


class HasGraph(Protocol):
    """An undirected model, which stands for its graph."""

    @property
    def graph(self) -> object: ...


class ImaginesRows(Protocol):
    """A prior: one of the library, or of your own."""

    def bind(self, *args: Any, **how: Any) -> object: ...
    def imagine(self, *args: Any, **how: Any) -> object: ...


PriorLike: TypeAlias = "ImaginesRows | float | Sequence[ImaginesRows | Mapping[str, object]] | Mapping[str, object]"
"""What `prior=` takes: a prior, a pseudo-count, several priors, or by node a prior or pseudo-counts (numbers, lists of lists,
tables: `object`)."""


class ScoresNodes(Protocol):
    """A score: one of the library, or of your own."""

    def bind(self, *args: Any, **how: Any) -> object: ...
    def local(self, *args: Any, **how: Any) -> float: ...


class SearchesGraphs(Protocol):
    """A method of structure search: one of the library, or of your own."""

    def run(self, *args: Any, **how: Any) -> object: ...


class FitsNodes(Protocol):
    """A family of conditional distributions, such as `Logistic()`."""

    def n_parameters(self, *args: Any, **how: Any) -> int: ...


class IsDistribution(Protocol):
    """A distribution of `suffice.exponential`, such as `Gamma()`."""

    def from_mean(self, *args: Any, **how: Any) -> object: ...


FamiliesLike: TypeAlias = "Mapping[str, FitsNodes | IsDistribution]"
"""What `families=` takes: families by node."""
