"""What a family of conditional distributions is, and what a prior is.

A family is orthogonal to priors, scores and searches: it says which statistic it needs, and turns a statistic into an
estimate, a log-likelihood and a log-evidence. `cpd` has what its estimates can do.

A prior imagines a statistic for a child and its parents, and speaks only for the families it knows:

    choose(variables, nodes, statistics)    the same with numbers that it leaves free chosen by the evidence of a graph
    bind(variables, statistics)             the same with every default filled from the data, once per fit or search
    imagine(child, parents, seen)           the statistic that it imagines of a node

The bound prior is kept on the model, so that updating with more rows, and the chain rule of the evidence, hold for one and the
same prior.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from suffice.basis.registry import Named, find_type, not_known, type_of
from suffice.basis.variables import Finite, Variable
from suffice.errors import FitError, nearest
from suffice.errors.remedies import ANY_PRIOR, Remedy
from suffice.families.protocol.cpd import Array as Array
from suffice.families.protocol.cpd import Columns as Columns
from suffice.families.protocol.cpd import Cpd as Cpd
from suffice.families.protocol.cpd import as_numbers as as_numbers
from suffice.families.protocol.cpd import flat_index as flat_index
from suffice.families.protocol.cpd import frame as frame
from suffice.families.protocol.cpd import split as split
from suffice.numerics.exponential.arithmetic.values import Interval as Interval
from suffice.statistics import Counts, Moments, Request, Statistics

Statistic = Counts | Moments


@dataclass(frozen=True)
class Mean:
    """With a prior, the point value of a parameter is its posterior mean (the predictive).

    >>> Mean()
    Mean()
    """

    less: ClassVar[float] = 0.0
    """What is taken from imagined counts."""

    def rows_behind(self, df: Any, d: int) -> Any:
        """The rows behind a variance with so many degrees of freedom, estimated beside d coefficients."""
        return df - 2.0


@dataclass(frozen=True)
class Mode:
    """With a prior, the point value of a parameter is its posterior mode (MAP); refused where there is none.

    >>> Mode()
    Mode()
    """

    less: ClassVar[float] = 1.0

    def rows_behind(self, df: Any, d: int) -> Any:
        return df + 2.0 + d


Estimate = Mean | Mode
S = TypeVar("S", bound=Statistic, contravariant=True)


class Family(Protocol[S]):
    """A kind of p(child | parents), without parameters.

    An `iterative` one is a regression, with one set of parameters for all states of its parents; the child of a `normal` one is
    normal around a line, so that moments say all.
    """

    @property
    def iterative(self) -> bool: ...
    @property
    def normal(self) -> bool: ...
    def needs(self, child: Variable, parents: Sequence[Variable]) -> Request: ...
    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int: ...
    def log_likelihood(self, child: Variable, seen: S) -> float: ...
    def log_evidence(self, child: Variable, seen: S, imagined: S) -> float: ...
    def estimate(self, child: Variable, parents: Sequence[Variable], seen: S, imagined: S | None, how: Estimate) -> Cpd: ...


Node = tuple[Variable, Sequence[Variable], Any]
"""A child, its parents, and what was seen of them."""


class Prior(Named):
    """What a prior can do. One of its own says `imagine`, and else only what it does in another way."""

    listed_in = "priors"
    public_name: ClassVar[str] = ""
    """What users call it, where a distribution has that name, and the class another."""
    chooses: ClassVar[bool] = False
    """Whether it may leave numbers free, for the data to choose."""
    worth: ClassVar[str] = ""
    """Its number that says how much it is worth, and that `EmpiricalBayes` may choose."""
    form: ClassVar[int]
    """1: rows spread evenly over the cells of a table; 2: rows in each cell; 3: rows spread over configurations that occur."""
    needs_data: ClassVar[bool] = False
    """Whether what it imagines depends on where there is data, so that it is for scores alone."""

    @property
    def title(self) -> str:
        """What users call it."""
        return str(type(self).__dict__.get("public_name") or type(self).__name__)

    def __repr__(self) -> str:
        return f"{self.title}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in fields(self))})"  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """The prior as plain values, for JSON: its fields."""
        return self._head() | {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def _head(self) -> dict[str, Any]:
        return {"type": type_of(self)}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Prior:
        """What `to_dict` wrote."""
        return cls(**{k: v for k, v in d.items() if k != "type"})

    @property
    def parts(self) -> Sequence[Any]:
        """The priors that it is made of."""
        return (self,)

    @property
    def is_one_matrix(self) -> bool:
        """Whether what it imagines of numbers is one mean and scatter of all of them."""
        return False

    @property
    def table_form(self) -> tuple[int, float] | None:
        """What it imagines of tables as the kernels know it: its `form` and `ess`; None if it is anything else."""
        form = type(self).__dict__.get("form")  # of this class alone: one that is made from it may imagine something else
        return None if form is None else (form, float(getattr(self, "ess", 1.0)))

    @staticmethod
    def of_node(given: Any, name: str) -> Any:
        """What is given for a node: one number is for all of them, others are by name."""
        return given.get(name) if isinstance(given, Mapping) else given

    def refuse_unknown_nodes(self, variables: Mapping[str, Variable], *given: Any) -> None:
        """Refuse numbers by node of nodes that are not in the graph."""
        for name in (n for own in given if isinstance(own, Mapping) for n in own):
            if name not in variables:
                raise FitError(f"{self.title} speaks of {name!r}, which is not in the graph{nearest(name, variables)}")

    def choose(self, variables: Mapping[str, Variable], nodes: Iterable[Node], statistics: Statistics) -> Any:
        """The prior with its free numbers chosen by the evidence of these nodes; `bind` then fills what was chosen."""
        return self

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> Any:
        """The prior with its defaults filled from the data."""
        return self

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Any:
        """The statistic that it imagines of a node, or a `PriorBelief`; None where it has nothing to say. For a score it may
        depend on where there is data, as `seen` says."""
        raise NotImplementedError


@runtime_checkable
class Imagining(Protocol):
    """The least that a prior has, written wherever."""

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> Any: ...
    def imagine(self, child: Variable, parents: Sequence[Variable]) -> Any: ...


class PriorBelief:
    """What a prior that is not conjugate holds of a node, in place of imagined rows."""

    of: ClassVar[str]
    """The name of the prior."""
    instead: ClassVar[Remedy] = ANY_PRIOR
    """Priors that imagine rows of such nodes."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What it answers for its kind of nodes: `log_evidence(child, seen)`, point values, `interval`, …"""


def imagined_rows(prior: Prior, child: Variable, parents: Sequence[Variable]) -> Any:
    """What a prior imagines of a node where nothing but rows will do."""
    said = prior.imagine(child, parents)
    if isinstance(said, PriorBelief):
        raise FitError(f"{said.of} imagines no rows of {child.name!r}, which are needed here: give {said.instead}")
    return said


def prior_of(d: Mapping[str, Any]) -> Prior:
    """The prior that `to_dict` wrote."""
    kind = find_type("priors", d["type"])
    if kind is None:
        raise not_known(f"a prior of the type {d['type']!r}")
    prior: Prior = kind.from_dict(d)
    return prior


def is_number(x: object) -> bool:
    """Whether this is a number; True and False are none."""
    return isinstance(x, (int, float, np.number)) and not isinstance(x, bool)


def check_positive(name: str, value: object) -> None:
    if not (isinstance(value, (int, float, np.number)) and np.isfinite(value) and value > 0):
        raise FitError(f"{name} must be a positive number, not {value!r}")


def in_order(given: Any, child: Variable, what: str) -> Array:
    """Numbers of a node's states, given in their order or by state, as an array."""
    assert isinstance(child, Finite)
    if isinstance(given, Mapping):
        differing = [s for s in (*given, *child.states) if s not in given or s not in child.states]
        if differing:
            raise FitError(
                f"{what} of {child.name!r} and the data differ in the state {differing[0]!r}; fit again with all rows, or "
                "declare the states before"
            )
        given = [given[s] for s in child.states]
    refusal = f"{what} of {child.name!r} needs {child.n_states} numbers, one per state, not {given!r}"
    numbers = as_numbers(given, refusal, FitError)
    if numbers.shape != (child.n_states,) or not np.all(np.isfinite(numbers)):
        raise FitError(refusal)
    return numbers


def all_finite(child: Variable, parents: Sequence[Variable]) -> bool:
    """Whether this is a table, of which a prior of tables speaks."""
    return all(isinstance(v, Finite) for v in (child, *parents))
