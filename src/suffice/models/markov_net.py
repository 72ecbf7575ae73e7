"""Markov networks of finite variables: p(x) = Π φ_f(x_f) / Z, fitted or written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.display import Rows, Tabular
from suffice.engines.scan import scan
from suffice.errors import DataError, MissingCells, ModelError, TooLarge, counted, nearest
from suffice.families.protocol.family import Mean
from suffice.graphs import Graph
from suffice.models.estimates.provenance import Provenance
from suffice.models.questions.answers import and_more
from suffice.models.undirected.factor import CompleteRows, Factor, checked_factors, twin_of
from suffice.models.undirected.features import Features, UndirectedModel
from suffice.models.undirected.goodness_of_fit import GoodnessOfFit, goodness_of_fit
from suffice.models.undirected.log_linear import Ising, LogLinear, Names
from suffice.models.undirected.terms import Terms
from suffice.models.undirected.twin import Undirected
from suffice.models.undirected.weight_errors import standard_errors
from suffice.remedies import BDEU, BY_BIC
from suffice.statistics import Request, Statistics
from suffice.variables import Finite, by_name

if TYPE_CHECKING:
    import pyarrow as pa

    from suffice.models.bayes_net import BayesNet
    from suffice.models.questions.evidence import Given

Array = npt.NDArray[np.float64]


class MarkovNet(Undirected, Provenance, Tabular):
    """A Markov network. `fit` makes one from a `Graph`, a `LogLinear`, `Pairwise` or `Ising` model or `Features`; this makes one
    from numbers: `factors` maps sets of names to tables of ln φ, an axis per name, or lists pairs of them.

    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> net = MarkovNet({("x", "y"): [[1.0, 0.0], [0.0, 1.0]], "y": [0.0, 0.5]}, variables=[x, y])
    >>> net.graph, round(net.log_normaliser, 6)
    (Graph('x -- y'), 2.287339)
    >>> round(net.query("x", given={"y": "yes"})["yes"], 6)
    0.731059
    """

    file_kind = "markov_net"

    def __init__(self, factors: Any, variables: Mapping[str, Finite] | Iterable[Finite]) -> None:
        known = by_name(variables)
        for v in known.values():
            if not isinstance(v, Finite):
                raise ModelError(f"{v.name!r} is {v!r}, and a MarkovNet is of finite variables")
        finite: dict[str, Finite] = known  # type: ignore[assignment]
        self._set(finite, checked_factors(factors, finite))

    def _set(
        self,
        variables: Mapping[str, Finite],
        factors: Iterable[Factor],
        model: UndirectedModel | None = None,
        weights: Array | None = None,
        log_normaliser: float | None = None,
        statistics: Statistics | None = None,
        prior: Any = None,
        penalty: Any = None,
        objective: Any = None,
        log_evidence: float | None = None,
        fit_info: str = "given by hand",
        trace: Iterable[Any] = (),
    ) -> None:
        self._variables, self._factors, self._model = dict(variables), tuple(factors), model
        self._weights, self._log_normaliser = weights, log_normaliser
        self._statistics, self._prior, self._penalty, self._objective = statistics, prior, penalty, objective
        self._log_evidence, self._fit_info, self._trace = log_evidence, fit_info, tuple(trace)
        self._estimate, self._incomplete = Mean(), False

    @classmethod
    def of(cls, variables: Mapping[str, Finite], factors: Iterable[Factor], **fitted: Any) -> MarkovNet:
        """A network from finished factors; the way in for `fit` and for readers of files."""
        net = cls.__new__(cls)
        net._set(variables, factors, **fitted)
        return net

    @property
    def variables(self) -> Mapping[str, Finite]:
        """The variables by name, in the order in which they were declared or stand in the file."""
        return MappingProxyType(self._variables)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """ln φ of each factor: ln p(x) = Σ ln φ_f(x_f) − log_normaliser."""
        return self._factors

    @cached_property
    def model(self) -> UndirectedModel:
        """Which variables interact, as a value: what it was fitted as, else the model whose generators its factors are."""
        if self._model is not None:
            return self._model
        own: list[Names] = [(n,) for n in self._variables]
        return LogLinear([*own, *(f.names for f in self._factors if f.names)])

    @property
    def penalty(self) -> Any:
        """The penalty it was fitted with."""
        return self._penalty

    @property
    def objective(self) -> Any:
        """What its parameters are the best of."""
        return self._objective

    @property
    def trace(self) -> tuple[Any, ...]:
        """The records of the way to it, where that was one of many rounds: by contrastive divergence."""
        return self._trace

    @property
    def graph(self) -> Graph:
        return self.model.graph

    def __len__(self) -> int:
        return len(self._variables)

    def __contains__(self, name: object) -> bool:
        return name in self._variables

    def __iter__(self) -> Any:
        return iter(self._variables)

    @cached_property
    def _made(self) -> tuple[BayesNet, float] | TooLarge:
        """The twin, or why there is none: it takes a while to find out either."""
        try:
            return twin_of(self._factors, self._variables)
        except TooLarge as error:
            return error

    @property
    def _twin(self) -> tuple[BayesNet, float]:
        if isinstance(self._made, TooLarge):
            raise TooLarge(str(self._made))
        return self._made

    def _directed(self) -> BayesNet:
        return self._twin[0]

    @property
    def log_normaliser(self) -> float:
        """ln Z = ln Σ Π φ over all joint states.

        >>> round(MarkovNet({"x": [0.0, 0.0]}, [Finite("x", ["a", "b"])]).log_normaliser, 6)
        0.693147
        """
        return self._twin[1] if self._log_normaliser is None else self._log_normaliser

    @property
    def n_parameters(self) -> int:
        """The number of free parameters."""
        return self.model.n_parameters(self._variables)

    @property
    def terms(self) -> Terms:
        """The terms of the model, and how weights make factors of them."""
        return Terms.of(self.model, self._variables)

    @property
    def weights(self) -> dict[Any, Array]:
        """The weights of each term, w_T(x_T): those that sum to zero over each axis, or, with a penalty, those it was paid for.

        Of `Features` one number under each feature's name.

        >>> net = MarkovNet({"x": [0.0, 2.0]}, [Finite("x", ["a", "b"])])
        >>> net.weights[("x",)]
        array([-1.,  1.])
        """
        return self._named(self.flat_weights)

    @property
    def standard_errors(self) -> dict[Any, Array]:
        """The standard errors of the weights, in the same shape: from the inverse of the information, where the tree is small.

        >>> import suffice as sf
        >>> net = sf.fit(sf.LogLinear(["x"]), {"x": list("aaab")})
        >>> net.standard_errors[("x",)].round(4)  # ½ √(1/3 + 1/1)
        array([0.5774, 0.5774])
        """
        return self._named(standard_errors(self))

    def _named(self, flat: Array) -> dict[Any, Array]:
        if isinstance(self.model, Features):
            return dict(zip(self.model.weight_names, flat, strict=True))
        return self.terms.weights_by_term(flat)

    @cached_property
    def flat_weights(self) -> Array:
        """The weights of all terms, one after another."""
        if self._weights is not None:
            return self._weights
        given = [f.ordered() for f in self._factors if f.names]
        terms = Terms(self._variables, self.model.terms(self._variables), [f.names for f in given])
        return terms.centred(np.concatenate([f.log.reshape(-1) for f in given])) if given else np.zeros(terms.n_weights)

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

    def log_prob(self, rows: Any) -> Array:
        """ln p(row) of each row, in the order of the rows; where cells are missing, ln p(the cells that are there).

        >>> x = Finite("x", ["a", "b"])
        >>> MarkovNet({"x": [0.0, -800.0]}, [x]).log_prob({"x": ["b", "a"]})
        array([-800.,    0.])
        """
        known = scan(rows)
        if any(n not in known.columns for n in self._variables):
            return super().log_prob(rows)
        known = self.rows(known)
        if any(known.missing.values()) or not known.n_rows:
            return super().log_prob(rows)
        return np.concatenate(list(known.map(CompleteRows(self._factors, self.log_normaliser))))

    def log_prob_of(self, given: Any) -> float:
        """ln p(given); −inf for what cannot be."""
        if isinstance(given, Mapping) and set(given) == set(self._variables) and all(isinstance(s, str) for s in given.values()):
            return float(self.log_prob({n: [s] for n, s in given.items()})[0])
        return super().log_prob_of(given)

    def log_likelihood(self, data: Any = None) -> float:
        """Σ ln p(row) over the data, from the tables of the factors alone; without data, over what the network was fitted from.

        Where cells are missing: Σ ln p(the cells of a row that are there).
        """
        try:
            seen = self.summary(data)
        except MissingCells:
            return self.directed.log_likelihood(data)
        total = -seen.weight * self.log_normaliser
        for f in self._factors:
            keys, N = seen.counts(f.names).listed() if f.names else (np.zeros(1, np.int64), np.array([seen.weight]))
            total += float(N @ f.log.reshape(-1)[keys])
        return total

    def summary(self, data: Any = None) -> Statistics:
        """The statistics of data that this network's factors need."""
        if data is None:
            if self._statistics is None:
                raise ModelError("this network was not fitted from data: give the data")
            return self._statistics
        if isinstance(data, Statistics):
            return data.recoded(self._variables)
        rows = self.rows(data)
        rows.require_complete(list(self._variables))
        wanted = [f.names for f in self._factors if f.names] or [(n,) for n in self._variables][:1]
        gathered: Statistics = rows.gather([Request(names) for names in wanted])
        return gathered

    def rows(self, data: Any) -> Any:
        """Data read with the variables of this network: its states in its order."""
        opened = scan(data)
        for name in self._variables:
            if name not in opened.columns:
                raise DataError(f"the data has no column {name!r}, which the network names{nearest(name, opened.columns)}")
        return opened.with_variables(self._variables).select(list(self._variables))

    @cached_property
    def goodness_of_fit(self) -> GoodnessOfFit:
        """Deviance, Pearson's X², degrees of freedom and p values against the table of all variables together."""
        return goodness_of_fit(self, self.summary())

    @property
    def deviance(self) -> float:
        """G² = 2 Σ n ln(n / expected) over the cells of the table of all variables.

        >>> import suffice as sf
        >>> net = sf.fit(sf.LogLinear(["x", "y"]), {"x": list("aabb"), "y": list("uuuv")})
        >>> round(net.deviance, 6), net.df
        (1.726092, 1)
        """
        return self.goodness_of_fit.deviance

    @property
    def pearson(self) -> float:
        """X² = Σ (n − expected)² / expected."""
        return self.goodness_of_fit.pearson

    @property
    def p_value(self) -> float:
        """P(χ² of `df` degrees of freedom ≥ deviance)."""
        return self.goodness_of_fit.p_value

    @property
    def df(self) -> int:
        """Cells of the table of all variables, less one, less the free parameters."""
        return prod(v.n_states for v in self._variables.values()) - 1 - self.n_parameters

    def query(self, targets: str | Sequence[str], given: Given = None, **how: Any) -> Any:
        """p(targets | given), as `BayesNet.query`; where the tree of all is too large, that of what the evidence leaves."""
        try:
            return self.directed.query(targets, given, **how)
        except TooLarge:
            from suffice.models.undirected.near import near_net

            names = [targets] if isinstance(targets, str) else list(targets)
            if not given or any(n not in self for n in (*names, *given)):
                raise
            near, rest = near_net(self, names, given)
            if len(near) == len(self):
                raise
            answer: Any = near.directed.query(targets, rest, **how)
            return replace(answer, given=dict(given))

    def predict_proba(self, rows: Any, target: str, **how: Any) -> Any:
        """p(target | the other cells of a row), for each row; where the tree is too large, of rows that show all neighbours."""
        return self._answering(rows, target).predict_proba(rows, target, **how)

    def predict(self, rows: Any, target: str, **how: Any) -> Any:
        """The most probable state of the target in each row given its other cells, as one column; as `predict_proba`."""
        return self._answering(rows, target).predict(rows, target, **how)

    def _answering(self, rows: Any, target: str) -> BayesNet:
        """The network that predicts a target: of all variables, or, where its tree is too large, of the target's neighbours."""
        try:
            return self.directed
        except TooLarge:
            from suffice.models.undirected.near import blanket_net

            near = blanket_net(self, target, rows) if target in self else None
            if near is None:
                raise
            return near.directed

    def sample(self, n: int, seed: int | None = None) -> pa.Table:
        """n rows drawn as an Arrow table: independent ones by the tree, where that is too large by Gibbs sampling.

        >>> net = MarkovNet({"x": [0.0, -np.inf]}, [Finite("x", ["a", "b"])])
        >>> net.sample(2, seed=0)["x"].to_pylist()
        ['a', 'a']
        """
        try:
            return self.directed.sample(n, seed)
        except TooLarge:
            from suffice.models.undirected.gibbs_rows import gibbs_rows

            return gibbs_rows(self, n, seed)

    def bic(self, data: Any = None) -> float:
        """log-likelihood − ½ k ln N: higher is better."""
        seen = self.summary(data)
        return self.log_likelihood(seen) - 0.5 * self.n_parameters * float(np.log(seen.weight))

    def aic(self, data: Any = None) -> float:
        """log-likelihood − k: higher is better."""
        return self.log_likelihood(data) - self.n_parameters

    def __getstate__(self) -> dict[str, Any]:
        made = {"directed", "_made", "goodness_of_fit", "model", "flat_weights"}
        return {k: v for k, v in self.__dict__.items() if k not in made}

    def __eq__(self, other: object) -> bool:
        """Same variables, same model, same factors."""
        if not isinstance(other, MarkovNet) or self._variables != other._variables or self._factors != other._factors:
            return False
        return self.model == other.model

    __hash__ = None  # type: ignore[assignment]

    _lines, _indent = 40, "  "

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        facts = [(", ".join(f.names), f"{f.log.size:,}", _range(f.log)) for f in self._factors[:limit]]
        return [(["factor", "cells", "ln φ"], facts)], and_more(len(self._factors) - limit, "factor")

    def _headline(self) -> str:
        sizes = {"variable": len(self), "edge": len(self.graph.edges), "parameter": self.n_parameters}
        return f"MarkovNet of {', '.join(counted(n, noun) for noun, n in sizes.items())}; {self._fit_info}"


def _range(log: Array) -> str:
    return f"{log.min():.4g} … {log.max():.4g}"
