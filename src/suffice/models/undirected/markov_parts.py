"""What a Markov network of finite variables is: factors, p(x) = Π φ_f(x_f) / Z, the model that they are of, and ln Z."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np

from suffice.basis.output.display import Rows, and_more
from suffice.basis.variables import Finite, by_name
from suffice.errors import ModelError, TooLarge, listing
from suffice.errors.remedies import BDEU, BY_BIC
from suffice.families.categorical import Table
from suffice.graphs import Graph
from suffice.models.parts.closed_forms import as_closed_form
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.undirected.factor import Factor, Terms, checked_factors, eliminate
from suffice.models.undirected.features import Features, UndirectedModel
from suffice.models.undirected.log_linear import Ising, LogLinear
from suffice.models.undirected.twin import UndirectedParts
from suffice.numerics.inference.finite.network import Array
from suffice.statistics import Request, Statistics

if TYPE_CHECKING:
    import numpy.typing as npt

    from suffice.basis.argument_types import RowsLike

FactorsLike: TypeAlias = (
    "Mapping[str | tuple[str, ...], npt.ArrayLike] | Mapping[str, npt.ArrayLike] | Mapping[tuple[str, ...], npt.ArrayLike] "
    "| Iterable[Factor | tuple[str | tuple[str, ...], npt.ArrayLike]]"
)
"""What `MarkovNet` takes: tables of ln φ by the names of their axes, pairs of both, or factors."""


class MarkovParts(UndirectedParts):
    """A Markov network as questions take it. `MarkovNet` asks them."""

    file_kind: ClassVar[str] = "markov_net"
    _word = "network"
    variables: Mapping[str, Finite]
    factors: tuple[Factor, ...]
    """ln φ of each factor: ln p(x) = Σ ln φ_f(x_f) − log_normaliser."""
    objective: Any
    """What its parameters are the best of."""
    trace: tuple[Any, ...]
    """The records of the way to it, where that was one of many rounds: by contrastive divergence."""
    _model: UndirectedModel | None
    _weights: Array | None
    _log_normaliser: float | None
    _log_evidence: float | None

    def __init__(self, factors: FactorsLike, variables: Mapping[str, Finite] | Iterable[Finite]) -> None:
        known = by_name(variables)
        for v in known.values():
            if not isinstance(v, Finite):
                raise ModelError(f"{v.name!r} is {v!r}, and a MarkovNet is of finite variables")
        finite: dict[str, Finite] = known  # type: ignore[assignment]
        vars(self).update(vars(self.of(finite, checked_factors(factors, finite))))

    @classmethod
    def of(
        cls,
        variables: Mapping[str, Finite],
        factors: Iterable[Factor],
        model: UndirectedModel | None = None,
        weights: Array | None = None,
        log_normaliser: float | None = None,
        penalty: Any = None,
        objective: Any = None,
        log_evidence: float | None = None,
        trace: Iterable[Any] = (),
        **provenance: Any,
    ) -> Self:
        """A network from finished factors; the way in for `fit` and for readers of files."""
        own: dict[str, Any] = {"variables": MappingProxyType(dict(variables)), "factors": tuple(factors), "trace": tuple(trace)}
        own |= {"_model": model, "_weights": weights, "_log_normaliser": log_normaliser, "_log_evidence": log_evidence}
        return cls._made_of({**own, "penalty": penalty, "objective": objective}, **provenance)

    @classmethod
    def of_tables(cls, bn: NetworkParts) -> Self:
        """A Bayesian network of tables as a Markov network on its moral graph: the same distribution, a factor for each node."""
        variables = {n: v for n, v in bn.variables.items() if isinstance(v, Finite)}
        if numbers := [n for n in bn.variables if n not in variables]:
            raise ModelError(
                f"{listing(numbers)} is not finite, and this is for networks of tables: bn.dag.moral() has the graph"
            )
        tables = {n: as_closed_form(bn[n]) for n in bn}
        with np.errstate(divide="ignore"):
            factors = [Factor((*(variables[p] for p in t.parents), variables[n]), np.log(t.probs)) for n, t in tables.items()]
        model, info = LogLinear(bn.dag.moral().cliques()), f"from a BayesNet ({bn.fit_info})"
        return cls.of(variables, factors, model=model, log_normaliser=0.0, fit_info=info)

    @cached_property
    def model(self) -> UndirectedModel:
        """Which variables interact, as a value: what it was fitted as, else the model whose generators its factors are."""
        if self._model is not None:
            return self._model
        return LogLinear([*((n,) for n in self.variables), *(f.names for f in self.factors if f.names)])

    @property
    def graph(self) -> Graph:
        return self.model.graph

    @cached_property
    def _eliminated(self) -> tuple[dict[str, Table], float] | TooLarge:
        """The tables of the twin and ln Z, or why there are none: it takes a while to find out either."""
        try:
            return eliminate(self.factors, self.variables)
        except TooLarge as error:
            return error

    @property
    def directed_tables(self) -> tuple[dict[str, Table], float]:
        """The tables of the same distribution as a Bayesian network, and ln Z; refused with its size where that is too large."""
        if isinstance(self._eliminated, TooLarge):
            raise TooLarge(str(self._eliminated))
        return self._eliminated

    @property
    def log_normaliser(self) -> float:
        """ln Z = ln Σ Π φ over all joint states.

        >>> round(MarkovParts({"x": [0.0, 0.0]}, [Finite("x", ["a", "b"])]).log_normaliser, 6)
        0.693147
        """
        return self.directed_tables[1] if self._log_normaliser is None else self._log_normaliser

    @property
    def n_parameters(self) -> int:
        """The number of free parameters."""
        return self.model.n_parameters(self.variables)

    @property
    def terms(self) -> Terms:
        """The terms of the model, and how weights make factors of them."""
        return Terms.of(self.model, self.variables)

    @property
    def weights(self) -> dict[Any, Array]:
        """The weights of each term, w_T(x_T): those that sum to zero over each axis, or, with a penalty, those it was paid for.

        Of `Features` one number under each feature's name.

        >>> net = MarkovParts({"x": [0.0, 2.0]}, [Finite("x", ["a", "b"])])
        >>> net.weights[("x",)]
        array([-1.,  1.])
        """
        return self.by_term(self.flat_weights)

    def by_term(self, flat: Array) -> dict[Any, Array]:
        """A number for each weight, by term, or by the names of `Features`."""
        if isinstance(self.model, Features):
            return dict(zip(self.model.weight_names, flat, strict=True))
        return self.terms.weights_by_term(flat)

    @cached_property
    def flat_weights(self) -> Array:
        """The weights of all terms, one after another."""
        if self._weights is not None:
            return self._weights
        given = [f.ordered() for f in self.factors if f.names]
        terms = Terms(self.variables, self.model.terms(self.variables), [f.names for f in given])
        return terms.centred_weights(np.concatenate([f.log.reshape(-1) for f in given])) if given else np.zeros(terms.n_weights)

    @property
    def fields(self) -> dict[str, float]:
        """h of each variable of an `Ising` model."""
        weights = self._of_ising("fields")
        return {n: float(weights[(n,)][0]) for n in self.model.nodes}

    @property
    def couplings(self) -> dict[tuple[str, str], float]:
        """J of each edge of an `Ising` model."""
        weights = self._of_ising("couplings")
        return {edge: float(weights[edge][0]) for edge in self.graph.edges}

    def _of_ising(self, what: str) -> dict[Any, Array]:
        if not isinstance(self.model, Ising):
            raise ModelError(f"{what} are those of an Ising model; this is {self.model!r}: ask for .weights")
        return self.weights

    @property
    def log_evidence(self) -> float:
        """ln p(data), parameters integrated out: of a decomposable graph that was fitted with a Dirichlet prior."""
        if self._log_evidence is None:
            raise ModelError(
                f"there is an evidence only of a decomposable graph with a Dirichlet prior, {BDEU}: score it by {BY_BIC}"
            )
        return self._log_evidence

    def summary(self, data: RowsLike | Statistics | None = None) -> Statistics:
        """The statistics of data that this network's factors need."""
        if data is None:
            if self.statistics is None:
                raise ModelError("this network was not fitted from data: give the data")
            return self.statistics
        if isinstance(data, Statistics):
            return data.recoded(self.variables)
        rows = self.rows(data)
        rows.require_complete(list(self.variables))
        wanted = [f.names for f in self.factors if f.names] or [(n,) for n in self.variables][:1]
        return rows.gather([Request(names) for names in wanted])

    @property
    def df(self) -> int:
        """Cells of the table of all variables, less one, less the free parameters."""
        return prod(v.n_states for v in self.variables.values()) - 1 - self.n_parameters

    def __eq__(self, other: object) -> bool:
        """Same variables, same model, same factors."""
        if not isinstance(other, MarkovParts) or self.variables != other.variables or self.factors != other.factors:
            return False
        return self.model == other.model

    __hash__ = None  # type: ignore[assignment]

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        facts = [(", ".join(f.names), f"{f.log.size:,}", f"{f.log.min():.4g} … {f.log.max():.4g}") for f in self.factors[:limit]]
        return [(["factor", "cells", "ln φ"], facts)], and_more(len(self.factors) - limit, "factor")


SomeMarkov = TypeVar("SomeMarkov", bound=MarkovParts)
"""A Markov network of the kind that was given."""
