"""Priors of tables, and what users may write for a prior: one, several, pseudo-counts, or one for each node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from suffice.basis.variables import Count, Finite, Real, Variable
from suffice.errors import FitError, listing, nearest
from suffice.errors.remedies import score_by
from suffice.families.chosen.node_kinds import ParameterPrior
from suffice.families.priors.number_priors import BGe as BGe
from suffice.families.priors.number_priors import GammaPrior, NormalInverseGammaPrior
from suffice.families.priors.number_priors import NormalWishart as NormalWishart
from suffice.families.protocol.cpd import Array, as_numbers
from suffice.families.protocol.family import Imagining, all_finite, check_positive, in_order, is_number, prior_of
from suffice.families.protocol.family import Node as Node
from suffice.families.protocol.family import Prior as Prior
from suffice.numerics.exponential.protocol.family import ConjugatePrior
from suffice.statistics import Counts, Statistics
from suffice.statistics.counts import checked_cells, describe, n_configurations, sizes

SEVERAL = (list, tuple, np.ndarray)
"""What numbers side by side are given as."""


def _imagined_counts(child: Variable, parents: Sequence[Variable], alpha: float) -> Counts | None:
    """The same count in every cell, without listing any."""
    family: tuple[Any, ...] = (*parents, child)
    return Counts(family, np.zeros(0), np.zeros(0, dtype=np.int64), alpha) if all_finite(child, parents) else None


@dataclass(frozen=True, repr=False)
class DirichletPrior(Prior):
    """`suffice.Dirichlet`: `alpha` imagined rows in each cell of each table: a number for all of them (Dirichlet(1) is Laplace's
    rule), a vector with one for each state of the child, in order or by name, or a table with one for each cell.

    A table has the shape of the node's probabilities, an axis for each parent and the child last, or one line for each
    configuration of the parents, of which the last changes fastest. Vectors and tables are given by node,
    `prior={"lung": [[9, 1], [1, 1]]}`, which means `{"lung": Dirichlet([[9, 1], [1, 1]])}`.

    >>> DirichletPrior(0.5)
    Dirichlet(alpha=0.5)
    >>> smoke, lung = Finite("smoke", ["no", "yes"]), Finite("lung", ["no", "yes"])
    >>> DirichletPrior({"yes": 1, "no": 9}).imagine(lung, [smoke]).dense()
    array([[9., 1.],
           [9., 1.]])
    """

    worth = "alpha"
    word = "dirichlet"
    types = ("Dirichlet",)
    public_name = "Dirichlet"
    after_colon = ("alpha", float)

    alpha: Any = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.alpha, (Mapping, *SEVERAL)):
            object.__setattr__(self, "alpha", _as_value(self.alpha))
        else:
            check_positive("alpha of Dirichlet", self.alpha)

    @property
    def is_number(self) -> bool:
        """Whether all cells of all tables have the same count."""
        return not isinstance(self.alpha, (Mapping, tuple))

    @property
    def table_form(self) -> tuple[int, float] | None:
        return (2, float(self.alpha)) if type(self) is DirichletPrior and self.is_number else None

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Counts | None:
        if not all_finite(child, parents):
            return None
        if self.is_number:
            return _imagined_counts(child, parents, self.alpha)
        if isinstance(self.alpha, tuple) and any(isinstance(part, tuple) for part in self.alpha):
            return self._table(child, parents)
        row = in_order(self.alpha, child, "a vector of pseudo-counts")
        _refuse_improper(row, child, (child,))
        return same_rows(row, (*parents, child), seen)

    def _table(self, child: Variable, parents: Sequence[Variable]) -> Counts:
        family: Any = (*parents, child)
        checked_cells(family, f"the table of {child.name!r}")
        shapeless = f"the pseudo-counts of {child.name!r} must be a table of numbers, with lines of the same length"
        shape, table = sizes(family), as_numbers(self.alpha, shapeless, FitError)
        if table.shape not in (shape, (n_configurations(family[:-1]), shape[-1])):
            rows = f"{n_configurations(family[:-1])} configurations of {listing([p.name for p in parents]) or 'no parents'}"
            raise FitError(
                f"the pseudo-counts of {child.name!r} have the shape {table.shape}, and its table has {shape}: a line for each "
                f"of the {rows}, a column for each of the states {listing(family[-1].states)}"
            )
        _refuse_improper(table, child, family)
        return Counts(family, table.reshape(shape))


# What users write. The distributions of these names are in `suffice.exponential`; these imagine rows by them, for nodes.
Dirichlet, Gamma, NormalInverseGamma = DirichletPrior, GammaPrior, NormalInverseGammaPrior


def _as_value(given: Any) -> Any:
    """Pseudo-counts as plain values that can be compared and written."""
    if isinstance(given, Mapping):
        return {str(state): float(x) if is_number(x) else x for state, x in given.items()}
    if isinstance(given, SEVERAL):
        return tuple(_as_value(part) for part in given)
    return float(given) if is_number(given) else given


def _refuse_improper(alpha: Array, child: Variable, family: Sequence[Any]) -> None:
    bad = ~(np.isfinite(alpha) & (alpha > 0.0)).reshape(-1)
    if bad.any():
        cell = int(np.argmax(bad))
        raise FitError(
            f"the pseudo-count of {child.name!r} at {describe(cell, family)} is {alpha.reshape(-1)[cell]:g}, and each must be a "
            "positive number: of 0 the prior would be improper"
        )


def same_rows(row: Array, family: Sequence[Any], seen: Counts | None = None) -> Counts:
    """Imagined counts of which every row of a table has the same; of those rows only that hold data, if that is known."""
    if seen is None:
        checked_cells(family, f"the table of {family[-1].name!r}")
        return Counts(tuple(family), np.broadcast_to(row, sizes(family)))
    rows = np.unique(seen.listed()[0] // len(row))
    keys = (rows[:, None] * len(row) + np.arange(len(row))).reshape(-1)
    return Counts(seen.variables, np.tile(row, len(rows)), keys)


@dataclass(frozen=True)
class K2(Prior):
    """One imagined row in each cell (Cooper & Herskovits 1992). Not score equivalent.

    >>> K2()
    K2()
    """

    form: ClassVar[int] = 2
    word = "k2"
    types = ("K2",)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Counts | None:
        return _imagined_counts(child, parents, 1.0)


@dataclass(frozen=True)
class BDeu(Prior):
    """`ess` imagined rows, spread evenly over the cells of each table (Buntine 1991). Score equivalent.

    >>> BDeu(10)
    BDeu(ess=10)
    """

    worth = "ess"
    form: ClassVar[int] = 1
    word = "bdeu"
    types = ("BDeu",)
    after_colon = ("ess", float)

    ess: float = 1.0

    def __post_init__(self) -> None:
        check_positive("the equivalent sample size of BDeu", self.ess)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Counts | None:
        cells = n_configurations(v for v in (*parents, child) if isinstance(v, Finite))
        return _imagined_counts(child, parents, self.ess / cells)


@dataclass(frozen=True)
class BDs(Prior):
    """`ess` imagined rows, spread evenly over the configurations of the parents that occur (Scutari 2016, PMLR 52, p. 438).

    Where data is sparse BDeu wastes imagined rows on configurations that never occur. Which do depends on the data, so this is
    for scores, `Evidence(BDs(1))`, not for `fit`. Not score equivalent.

    >>> BDs(10)
    BDs(ess=10)
    """

    word = "bds"
    after_colon = ("ess", float)
    form: ClassVar[int] = 3
    needs_data: ClassVar[bool] = True

    ess: float = 1.0

    def __post_init__(self) -> None:
        check_positive("the equivalent sample size of BDs", self.ess)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Counts | None:
        if seen is None:
            raise FitError(
                f"BDs imagines rows only where the data have some: it is a score, {score_by('Evidence(BDs(1))', 'bds:1')}, and "
                f"no prior; fit with BDeu"
            )
        if not isinstance(seen, Counts) or not isinstance(child, Finite):
            return None
        keys, _ = seen.listed()
        occur = len(np.unique(keys // child.n_states))
        return _imagined_counts(child, parents, self.ess / (max(occur, 1) * child.n_states))


@dataclass(frozen=True, repr=False)
class Several(Prior):
    """Several priors, written as a tuple: the first that speaks for a family is heard."""

    types = ("Several",)

    priors: tuple[Any, ...]

    def __repr__(self) -> str:
        return repr(self.priors)

    @property
    def parts(self) -> Sequence[Any]:
        return self.priors

    @property
    def chooses(self) -> bool:  # type: ignore[override]
        """Whether one of them does."""
        return any(p.chooses for p in self.priors)

    def choose(self, variables: Mapping[str, Variable], nodes: Iterable[Node], statistics: Statistics) -> Several:
        """Each by the nodes that none before it speaks for."""
        if not self.chooses:
            return self
        left, parts = list(nodes), []
        for part in self.priors:
            parts.append(part.choose(variables, left, statistics))
            bound = parts[-1].bind(variables, statistics)
            left = [node for node in left if bound.imagine(*node[:2]) is None]
        return Several(tuple(parts))

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> Several:
        return Several(tuple(p.bind(variables, statistics) for p in self.priors))

    def to_dict(self) -> dict[str, Any]:
        return self._head() | {"priors": [p.to_dict() for p in self.priors]}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Prior:
        return Several(tuple(map(prior_of, d["priors"])))

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Any:
        answers = (p.imagine(child, parents, seen) for p in self.priors)
        return next((a for a in answers if a is not None), None)


@dataclass(frozen=True)
class PriorsByNode(Prior):
    """A prior for each of some nodes: what `prior={"lung": [[9, 1], [1, 1]], "smoke": BDeu(10)}` means. Of other nodes it says
    nothing, so that others may: `prior=({"lung": [[9, 1], [1, 1]]}, BDeu(1))`.
    """

    types = ("ByNode",)

    priors: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not self.priors:
            raise FitError("a prior by node names no node; leave it out, or write prior={'x': [9, 1]}")
        object.__setattr__(self, "priors", {node: _of_node(node, given) for node, given in self.priors.items()})

    @property
    def chooses(self) -> bool:  # type: ignore[override]
        """Whether one of them does."""
        return any(p.chooses for p in self.priors.values())

    def choose(self, variables: Mapping[str, Variable], nodes: Iterable[Node], statistics: Statistics) -> PriorsByNode:
        """Each by its own node."""
        if not self.chooses:
            return self
        seen = {node[0].name: node for node in nodes}
        parts = {n: p.choose(variables, [seen[n]], statistics) if n in seen else p for n, p in self.priors.items()}
        return PriorsByNode(parts)

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> PriorsByNode:
        for node in self.priors:
            if node not in variables:
                raise FitError(f"the prior speaks of {node!r}, which is not in the graph{nearest(node, variables)}")
        return PriorsByNode({n: p.bind(variables, statistics) for n, p in self.priors.items()})

    def to_dict(self) -> dict[str, Any]:
        return self._head() | {"priors": {n: p.to_dict() for n, p in self.priors.items()}}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Prior:
        return PriorsByNode({n: prior_of(p) for n, p in d["priors"].items()})

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Any:
        own = self.priors.get(child.name)
        answer = None if own is None else own.imagine(child, parents, seen)
        if answer is None and own is not None:
            kind = {Finite: "finite node", Count: "count", Real: "real node"}.get(type(child), repr(child))
            raise FitError(
                f"{own.title}, given as the prior of {child.name!r}, says nothing about a {kind} with its "
                "parents: pseudo-counts are for tables, NormalInverseGamma, BGe and KnownVariance for numbers, Gamma for counts, "
                "Conjugate for distributions that were chosen"
            )
        return answer


def _of_node(node: str, given: Any) -> Any:
    """The prior of one node: one, or pseudo-counts."""
    if isinstance(given, Prior):
        return given
    if is_number(given) or isinstance(given, (Mapping, *SEVERAL)):
        try:
            return Dirichlet(given)
        except FitError as error:
            raise FitError(f"the pseudo-counts of {node!r}: {error.said}") from None
    if given is None:
        raise FitError(f"the prior of {node!r} is None: leave the node out of prior={{...}}, which then says nothing about it")
    return _check_prior(given)


@dataclass(frozen=True)
class Written(Prior):
    """A prior that is written elsewhere, with no more than `bind` and `imagine`."""

    prior: Any

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> Written:
        return Written(self.prior.bind(variables, statistics))

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Any:
        return self.prior.imagine(child, parents)


def as_prior(prior: object) -> Prior | None:
    """One prior from what a user gives: a prior, several of them, one for each node, a pseudo-count for all cells, or None."""
    if prior is None or isinstance(prior, Prior):
        return prior
    if is_number(prior):
        return Dirichlet(prior)
    if isinstance(prior, SEVERAL):
        if len(prior) and all(is_number(p) or isinstance(p, SEVERAL) for p in prior):
            raise FitError(f"the pseudo-counts {list(prior)!r:.60} name no node: give them by node, prior={{'x': [9, 1]}}")
        return Several(tuple(_check_prior(p) for p in prior))
    return _check_prior(prior)


def suitable(prior: Any, variables: Iterable[Variable], default: tuple[Any, ...]) -> Any:
    """The default prior, of states, numbers and counts, without the part that no variable needs; any other prior as it is."""
    if not isinstance(prior, tuple) or prior != default:
        return prior
    kinds = {type(v) for v in variables}
    needed = tuple(p for p, kind in zip(default, (Finite, Real, Count), strict=True) if kind in kinds)
    return needed if len(needed) != 1 else needed[0]


def _check_prior(prior: object) -> Prior:
    if isinstance(prior, type):
        raise FitError(f"a prior is an object: write {prior.__name__}(), with its parameters, not the class")
    if isinstance(prior, Mapping):
        return PriorsByNode(prior)
    if isinstance(prior, ConjugatePrior) and all(getattr(prior, name) is not None for name in prior.names):
        return ParameterPrior.of(prior)
    if not isinstance(prior, Imagining):
        raise FitError(
            f"{prior!r} is not a prior; use Dirichlet, K2, BDeu, BDe, NormalInverseGamma, BGe or Gamma, or pseudo-counts "
            "by node, {'x': [9, 1]}"
        )
    return prior if isinstance(prior, Prior) else Written(prior)
