"""What a Bayesian network is: a graph, its variables, a distribution for each node, and where these come from: what it was fitted
from, with which prior, and how.

Questions take this; `BayesNet`, which adds them as methods, is made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeGuard, TypeVar

from suffice.basis.output.display import Rows, Tabular, and_more
from suffice.basis.variables import Declaration, Finite, Variable
from suffice.engines.data import Data
from suffice.engines.scan import rows_with, scan
from suffice.errors import DataError, ModelError, listing, nearest, quantity
from suffice.errors.remedies import Remedy
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Cpd, Estimate, Mean
from suffice.graphs import Dag
from suffice.graphs.directed import DagLike
from suffice.graphs.text import Edge
from suffice.models.parts.closed_forms import Compiled
from suffice.models.parts.parameter_covariance import n_conventions
from suffice.models.parts.sharing import Tie
from suffice.models.parts.written import check_nodes, declared_variables, written_cpd
from suffice.statistics import Statistics

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike
    from suffice.models.parts.parameter_covariance import ParameterCovariance

    CovarianceSource: TypeAlias = ParameterCovariance | Callable[[], ParameterCovariance] | None
    """How well parameters are known, or how to find out."""


WITHOUT_INFORMATION = Remedy(
    "or a pickle without it, learned with information=False, or not by EM of a graph; em(dag, data, start=bn, information=True) "
    "finds it",
    "without it; fit it with --information",
)
"""Why a network does not have the observed information, and how it gets it."""

_READ_ONLY = ("variables", "interventions")
"""Fields that are views, which do not pickle."""

ASKED_OF_STEPS = dict.fromkeys(
    ("decode", "filter", "follow", "forecast", "posterior_decode", "smooth", "stationary"),
    "that is asked of a Chain, which fit('x[-1] -> x', sequences(data, by=..., order=...)) makes",
)
"""Questions to chains of steps, which a network of rows is not asked."""


class Provenance:
    """What every model remembers of how it came about. The fields that a model declares never change."""

    statistics: Statistics | None
    """What it was fitted from; None if it was written down, or fitted from incomplete data."""
    prior: Prior | None
    """The prior it was fitted with, with every default filled in."""
    estimate: Estimate
    """Whether point values are posterior means or modes."""
    fit_info: str
    """How it came about, in a sentence."""
    incomplete: bool
    """Whether it was fitted from data with missing cells or hidden variables."""
    _known_parameters: CovarianceSource = None
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    """What is asked of other kinds of models, and how this kind is asked it."""

    if not TYPE_CHECKING:  # which should go on to know all names

        def __getattr__(self, name: str) -> Any:
            hint = f": {self._elsewhere[name]}" if name in self._elsewhere else ""
            raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}", name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        if name[:1] != "_" and any(name in vars(c).get("__annotations__", ()) for c in type(self).__mro__):
            raise AttributeError(f"{name!r} of a {type(self).__name__} never changes; make another one")
        super().__setattr__(name, value)

    @classmethod
    def _made_of(
        cls,
        own: Mapping[str, Any],
        statistics: Statistics | None = None,
        prior: Prior | None = None,
        estimate: Estimate | None = None,
        fit_info: str = "given by hand",
        incomplete: bool = False,
        covariance: CovarianceSource = None,
    ) -> Self:
        """A model with the fields that are its own, and how it came about."""
        model = cls.__new__(cls)
        known = {"statistics": statistics, "prior": prior, "estimate": estimate or Mean(), "fit_info": fit_info}
        vars(model).update(own, **known, incomplete=incomplete, _known_parameters=covariance)
        return model

    def __getstate__(self) -> dict[str, Any]:
        # what is made when it is first asked for, and the rows that a covariance would be found from, stay behind
        made = {n for c in type(self).__mro__ for n, x in vars(c).items() if isinstance(x, cached_property)}
        held = {n: x for n, x in vars(self).items() if n not in made} | {"_known_parameters": self.found_covariance}
        return {n: dict(x) if isinstance(x, MappingProxyType) else x for n, x in held.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({n: MappingProxyType(x) if n in _READ_ONLY else x for n, x in state.items()})

    @property
    def is_fitted(self) -> bool:
        """Whether its parameters were estimated from rows, and not given."""
        return self.incomplete or self.statistics is not None

    @property
    def parameter_covariance(self) -> ParameterCovariance | None:
        """How well parameters learned from incomplete rows are known, which intervals of answers need; else None.

        It is found when it is first asked for, from the rows as EM reduced them, which the network keeps until then. A file or a
        pickle has it if it was found before: `em(..., information=True)`.
        """
        if callable(self._known_parameters):
            self._known_parameters = self._known_parameters()
        return self._known_parameters

    @property
    def found_covariance(self) -> ParameterCovariance | None:
        """The same if it was found before, which is what files and pickles hold."""
        return None if callable(self._known_parameters) else self._known_parameters

    def covariance_of(self, names: Collection[str]) -> CovarianceSource:
        """That of some nodes, or how to find it."""

        def some() -> ParameterCovariance:
            known = self.parameter_covariance
            assert known is not None
            return known.only(names)

        if self._known_parameters is None:
            return None
        return some if callable(self._known_parameters) else some()

    def with_covariance(self, covariance: CovarianceSource) -> Self:
        """The same model, which knows how well its parameters are known, or how to find out.

        >>> from suffice import fit
        >>> bn = fit("x", {"x": ["a", "b", None]})
        >>> bn.with_covariance(None).parameter_covariance is None
        True
        """
        result = object.__new__(type(self))
        vars(result).update(vars(self), _known_parameters=covariance)
        return result

    def with_fit_info(self, info: str) -> Self:
        """The same model with another sentence that says how it came about."""
        result = object.__new__(type(self))
        vars(result).update(vars(self), fit_info=info)
        return result


class NodeDistributions(Provenance, Tabular):
    """A model of distributions by node, each looked up by the node's name."""

    _word: ClassVar[str]
    """What the model is called in refusals."""
    variables: Mapping[str, Variable]
    """The variables by name, in the order in which they were declared or stand in the file; of a chain those of a slice."""
    _cpds: dict[str, Cpd]
    _lines, _indent = 40, "  "

    def __getitem__(self, name: str) -> Cpd:
        if name not in self._cpds:
            raise ModelError(f"the {self._word} has no node {name!r}{nearest(str(name), self._cpds)}")
        return self._cpds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cpds)

    def __len__(self) -> int:
        return len(self._cpds)

    def __contains__(self, name: object) -> bool:
        return name in self._cpds


class NetworkParts(NodeDistributions):
    """A network as questions take it. `BayesNet` asks them."""

    dag: Dag
    """The graph: which nodes are the parents of which."""
    hidden: frozenset[str]
    """The variables that no row showed when it was fitted: rows need not have them."""
    interventions: Mapping[str, Any]
    """What `do` set nodes to, by name: answers say it."""
    ties: tuple[Tie, ...]
    """The groups of nodes that share their parameters, with the parents of these."""
    shared: tuple[tuple[str, ...], ...]
    """The groups of nodes that share their parameters."""
    file_kind: ClassVar[str] = "bayes_net"
    _elsewhere: ClassVar[Mapping[str, str]] = ASKED_OF_STEPS
    _word = "network"

    def __init__(
        self, dag: DagLike, cpds: Mapping[str, object], variables: Mapping[str, Declaration] | Iterable[Variable] = ()
    ) -> None:
        graph, known = Dag(dag), declared_variables(cpds, variables)
        check_nodes(cpds, known, dict.fromkeys(graph.nodes), "graph")
        bound = {n: written_cpd(n, cpds[n], graph.parents(n), known) for n in graph.topological_order}
        vars(self).update(vars(self.of(graph, known, bound)))

    @classmethod
    def of(
        cls,
        dag: Dag,
        variables: Mapping[str, Variable],
        cpds: Mapping[str, Cpd],
        interventions: Mapping[str, Any] = MappingProxyType({}),
        hidden: Iterable[str] = (),
        ties: Iterable[Tie] = (),
        **provenance: Any,
    ) -> Self:
        """A network from finished CPDs; the way in for `fit` and for readers of files."""
        ties = tuple(ties)
        own = {
            "dag": dag,
            "variables": MappingProxyType(dict(variables)),
            "_cpds": {n: cpds[n] for n in variables},
            "interventions": MappingProxyType(dict(interventions)),
            "hidden": frozenset(hidden),
            "ties": ties,
            "shared": tuple(tie.nodes for tie in ties),
        }
        return cls._made_of(own, **provenance)

    def with_cpds(self, cpds: Mapping[str, Cpd], dag: Dag | None = None) -> Self:
        """The same variables, and what `do` set, with other distributions, which were not estimated from anything."""
        return self.of(dag or self.dag, self.variables, cpds, interventions=self.interventions)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes, sorted.

        >>> import suffice as sf
        >>> sf.load("cancer").nodes
        ('Cancer', 'Dyspnoea', 'Pollution', 'Smoker', 'Xray')
        """
        return self.dag.nodes

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges (parent, child) of the graph.

        >>> import suffice as sf
        >>> sf.load("cancer").edges[0]
        ('Cancer', 'Dyspnoea')
        """
        return self.dag.edges

    @property
    def intervened(self) -> frozenset[str]:
        """The nodes that `do` set from outside: their distributions are known, not estimated."""
        return frozenset(self.interventions)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters; those that nodes share count once. Of hidden numbers mean, variance and rotation are
        fixed by convention, and do not count."""
        again = {node for tie in self.ties for node in tie.nodes[1:]}
        listed = sum(cpd.n_parameters for name, cpd in self._cpds.items() if name not in again)
        return listed - (n_conventions(self.dag, self.variables, self.hidden) if self.hidden else 0)

    def covariance_beside_posteriors(self, names: Iterable[str]) -> ParameterCovariance | None:
        """The covariance of those of these nodes whose parameters have no posterior of their own, where the network knows it:
        they are drawn together by it."""
        if self._known_parameters is None and not self.incomplete:
            return None
        cpds: Mapping[str, Any] = {n: self._cpds[n] for n in names if n not in self.interventions}
        lacking = [n for n, c in cpds.items() if not (c.has_posterior or (c.is_regression and c.fitted is not None))]
        known = self.parameter_covariance if lacking else None
        if lacking and known is None and self.incomplete:
            raise ModelError(
                f"{listing(lacking)}: learned from incomplete rows, and this network does not have the observed information that "
                f"an interval needs: it was read from a file {WITHOUT_INFORMATION}"
            )
        if known is None or not (together := [n for n in lacking if n in known.charts]):
            return None
        known.check(together)
        return known.only(together)

    @cached_property
    def compiled(self) -> Compiled:
        """The network as numbered factors, for inference; made when it is first needed."""
        return Compiled(self.dag, self.variables, self._cpds)

    @property
    def regressions(self) -> list[str]:
        """The nodes whose likelihood is not a function of counts and moments."""
        return [n for n, cpd in self._cpds.items() if cpd.is_regression]

    def rows(self, data: Any) -> Data:
        """Data read with the variables of this network: its states in its order."""
        return rows_with(data, self.variables, "network")

    def is_summed(self, data: Any) -> bool:
        """Whether there are statistics instead of rows."""
        return data is None or isinstance(data, Statistics)

    def hides_columns(self, rows: Any) -> TypeGuard[RowsLike]:
        """Whether all columns are there but some that no row showed when the network was fitted, either."""
        if not self.hidden or self.is_summed(rows):
            return False
        lacking = set(self._cpds) - set(scan(rows).columns)
        return bool(lacking) and lacking <= self.hidden

    def summary(self, data: RowsLike | Statistics | None = None) -> Statistics:
        """The statistics of data that this network's questions need, over its own variables."""
        if data is None:
            if self.statistics is None:
                raise ModelError("this network was not fitted from data: give the data")
            return self.statistics
        if not isinstance(data, Statistics):
            return self.rows(data).gather([self._cpds[n].needs for n in self.dag.nodes])
        finite = {n: v for n, v in self.variables.items() if isinstance(v, Finite)}
        for name, variable in data.variables.items():
            if isinstance(variable, Finite) and name in finite and (unknown := set(variable.states) - set(finite[name].states)):
                raise DataError(f"the statistics hold the state {min(unknown)!r} of {name!r}, which the network does not know")
        return data.recoded(finite).with_variables(self.variables.values())

    def __eq__(self, other: object) -> bool:
        """Same graph, same variables, same parameters, shared by the same nodes."""
        if not isinstance(other, NetworkParts):
            return NotImplemented
        mine, theirs = ((bn.dag, bn.variables, bn.shared) for bn in (self, other))
        return mine == theirs and all(self[n].same(other[n]) for n in self)

    __hash__ = None  # type: ignore[assignment]

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        facts = []
        for name, cpd in list(self._cpds.items())[:limit]:
            v = self.variables[name]
            kind = quantity(v.n_states, "state") if isinstance(v, Finite) else v.word
            facts.append((name, kind, ", ".join(cpd.parents), f"{cpd.n_parameters:,}"))
        return [(["node", "type", "parents", "parameters"], facts)], and_more(len(self) - limit, "node")

    def _headline(self) -> str:
        sizes = {"node": len(self._cpds), "edge": len(self.dag.edges), "parameter": self.n_parameters}
        return f"BayesNet of {', '.join(quantity(n, noun) for noun, n in sizes.items())}; {self.fit_info}"


SomeNetwork = TypeVar("SomeNetwork", bound=NetworkParts)
"""A network of the kind that was given."""
