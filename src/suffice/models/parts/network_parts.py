"""What a Bayesian network is: a graph, its variables, a distribution for each node, and where these come from;
and its distributions as numbered factors, made once and kept with it.

Questions take this; `BayesNet`, which adds them as methods, is made of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard, TypeVar

from suffice.engines.scan import rows_with, scan
from suffice.errors import DataError, ModelError, nearest, quantity
from suffice.families.protocol.family import Cpd
from suffice.graphs import Dag
from suffice.graphs.directed import DagLike
from suffice.graphs.text import Edge
from suffice.inference.finite.junction_tree import JunctionTree
from suffice.inference.finite.network import GaussianNode, Network
from suffice.inference.numbers.hybrid import Hybrid
from suffice.models.parts.closed_forms import as_closed_form, stand_in
from suffice.models.parts.hidden_numbers import n_conventions
from suffice.models.parts.provenance import ASKED_OF_STEPS, Provenance
from suffice.models.parts.sharing import Tie
from suffice.models.parts.written import written_cpd
from suffice.output.display import Rows, Tabular, and_more
from suffice.statistics import Statistics
from suffice.variables import Declaration, Finite, NotNormal, Variable, by_name

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike


class Compiled:
    """The finite part of a network as a `Network` whose factor i is p(variable i | its parents), the rest as Gaussian nodes.

    `finite` and `reals` have the names in the order of their numbers (real nodes in topological order, counts among them).
    `open` are the regressions that have no place among these: inference goes through `regressions` and `rows`.
    """

    def __init__(self, dag: Dag, variables: Mapping[str, Variable], cpds: Mapping[str, Cpd]) -> None:
        self.variables = {n: v for n, v in variables.items() if isinstance(v, Finite)}
        self.finite = tuple(self.variables)
        self.reals = tuple(n for n in dag.topological_order if n not in self.variables)
        self.index = {n: i for i, n in enumerate(self.finite)}
        self.real_index = {n: i for i, n in enumerate(self.reals)}
        self.counts = frozenset(n for n, v in variables.items() if isinstance(v, NotNormal))
        self._cpds = dict(cpds)
        self.open = tuple(n for n in dag.topological_order if cpds[n].is_open)

    @cached_property
    def network(self) -> Network:
        return self._network(self._cpds)

    @cached_property
    def gaussians(self) -> tuple[GaussianNode, ...]:
        return self._nodes(self._cpds)

    @cached_property
    def tree(self) -> JunctionTree:
        return JunctionTree.of(self.network)

    @cached_property
    def hybrid(self) -> Hybrid:
        return Hybrid(self.network, self.gaussians)

    @cached_property
    def finite_part(self) -> Hybrid:
        """The finite nodes alone."""
        return Hybrid(self.network, ())

    @cached_property
    def around_regressions(self) -> Hybrid:
        """The same with something in the place of each open regression: a finite node is uniform, a number has the density 1."""
        if not self.open:
            return self.hybrid
        cpds = {n: stand_in(cpd) if n in self.open else cpd for n, cpd in self._cpds.items()}
        return Hybrid(self._network(cpds), self._nodes(cpds))

    def _network(self, cpds: Mapping[str, Any]) -> Network:
        tables = [as_closed_form(cpds[name]) for name in self.finite]
        factors = [((*(self.index[p] for p in cpd.parents), i), i, cpd.probs) for i, cpd in enumerate(tables)]
        return Network.of([v.n_states for v in self.variables.values()], factors)

    def _nodes(self, cpds: Mapping[str, Any]) -> tuple[GaussianNode, ...]:
        return tuple(as_closed_form(cpds[name]).node(self.index, self.real_index) for name in self.reals)


class NodeDistributions(Provenance, Tabular):
    """A model of distributions by node, each looked up by the node's name."""

    _word: ClassVar[str]
    """What the model is called in refusals."""
    _variables: dict[str, Variable]
    _cpds: dict[str, Cpd]
    _lines, _indent = 40, "  "

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables by name, in the order in which they were declared or stand in the file; of a chain those of a slice."""
        return MappingProxyType(self._variables)

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


def declared_variables(
    cpds: Mapping[str, object], variables: Mapping[str, Declaration] | Iterable[Variable]
) -> dict[str, Variable]:
    """The variables that a user declares beside distributions by node, {name: [states]} among them, as `scan` takes them, too."""
    if not isinstance(cpds, Mapping):
        raise ModelError(f"the distributions are given by node: {{'x': [0.5, 0.5], ...}}, not as {type(cpds).__name__}")
    declared: Any = variables
    if isinstance(variables, Mapping):
        declared = {n: Finite(n, v) if isinstance(v, (list, tuple)) else v for n, v in variables.items()}
    return by_name(declared)


def check_nodes(cpds: Mapping[str, object], known: Iterable[str], wanted: Collection[str], word: str) -> None:
    """Refuse what is no node of a graph, and a node without a distribution."""
    for name in [*cpds, *known]:
        if name not in wanted:
            raise ModelError(f"the {word} has no node {name!r}{nearest(name, wanted)}")
    if lacking := [n for n in wanted if n not in cpds]:
        raise ModelError(f"there is no distribution for the node {lacking[0]!r}")


class NetworkParts(NodeDistributions):
    """A network as questions take it. `BayesNet` asks them.

    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> parts = NetworkParts("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, variables=[x, y])
    >>> parts.edges, parts.compiled.finite
    ((('x', 'y'),), ('x', 'y'))
    """

    file_kind: ClassVar[str] = "bayes_net"
    _elsewhere: ClassVar[Mapping[str, str]] = ASKED_OF_STEPS
    _word = "network"

    def __init__(
        self, dag: DagLike, cpds: Mapping[str, object], variables: Mapping[str, Declaration] | Iterable[Variable] = ()
    ) -> None:
        graph, known = Dag(dag), declared_variables(cpds, variables)
        check_nodes(cpds, known, dict.fromkeys(graph.nodes), "graph")
        bound: dict[str, Cpd] = {}
        for name in graph.topological_order:
            bound[name] = written_cpd(name, cpds[name], graph.parents(name), known)
        self._set(graph, known, bound)

    def _set(
        self,
        dag: Dag,
        variables: Mapping[str, Variable],
        cpds: Mapping[str, Cpd],
        interventions: Mapping[str, Any] = MappingProxyType({}),
        hidden: Iterable[str] = (),
        ties: Iterable[Tie] = (),
        **provenance: Any,
    ) -> None:
        self._dag, self._variables, self._cpds = dag, dict(variables), {n: cpds[n] for n in variables}
        self._interventions, self._hidden, self._ties = dict(interventions), frozenset(hidden), tuple(ties)
        self._remember(**provenance)

    @classmethod
    def of(cls, dag: Dag, variables: Mapping[str, Variable], cpds: Mapping[str, Cpd], **fitted: Any) -> Self:
        """A network from finished CPDs; the way in for `fit` and for readers of files."""
        bn = cls.__new__(cls)
        bn._set(dag, variables, cpds, **fitted)
        return bn

    def with_cpds(self, cpds: Mapping[str, Cpd], dag: Dag | None = None) -> Self:
        """The same variables, and what `do` set, with other distributions, which were not estimated from anything.

        >>> import suffice as sf
        >>> bn = sf.load("cancer")
        >>> bn.with_cpds({n: bn[n] for n in bn}) == bn
        True
        """
        return self.of(dag or self._dag, self._variables, cpds, interventions=self._interventions)

    @property
    def dag(self) -> Dag:
        return self._dag

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes, sorted.

        >>> import suffice as sf
        >>> sf.load("cancer").nodes
        ('Cancer', 'Dyspnoea', 'Pollution', 'Smoker', 'Xray')
        """
        return self._dag.nodes

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges (parent, child) of the graph.

        >>> import suffice as sf
        >>> sf.load("cancer").edges[0]
        ('Cancer', 'Dyspnoea')
        """
        return self._dag.edges

    @property
    def hidden(self) -> frozenset[str]:
        """The variables that no row showed when it was fitted: rows need not have them."""
        return self._hidden

    @property
    def intervened(self) -> frozenset[str]:
        """The nodes that `do` set from outside: their distributions are known, not estimated."""
        return frozenset(self._interventions)

    @property
    def interventions(self) -> Mapping[str, Any]:
        """What `do` set nodes to, by name: answers say it.

        >>> import suffice as sf
        >>> done = sf.load("asia").do({"smoke": "yes"})
        >>> dict(done.interventions), repr(done.query("lung")).partition(",")[0]
        ({'smoke': 'yes'}, 'p(lung | do(smoke=yes))')
        """
        return MappingProxyType(self._interventions)

    @property
    def shared(self) -> tuple[tuple[str, ...], ...]:
        """The groups of nodes that share their parameters."""
        return tuple(tie.nodes for tie in self._ties)

    @property
    def ties(self) -> tuple[Tie, ...]:
        """The same groups with the parents of their nodes."""
        return self._ties

    @property
    def n_parameters(self) -> int:
        """The number of free parameters; those that nodes share count once. Of hidden numbers mean, variance and rotation are
        fixed by convention, and do not count."""
        again = {node for tie in self._ties for node in tie.nodes[1:]}
        listed = sum(cpd.n_parameters for name, cpd in self._cpds.items() if name not in again)
        return listed - (n_conventions(self._dag, self._variables, self._hidden) if self._hidden else 0)

    def __getstate__(self) -> dict[str, Any]:
        # the rows that a covariance would be found from stay behind
        return {k: v for k, v in self.__dict__.items() if k != "compiled"} | {"_known_parameters": self.found_covariance}

    @cached_property
    def compiled(self) -> Compiled:
        """The network as numbered factors, for inference; made when it is first needed."""
        return Compiled(self._dag, self._variables, self._cpds)

    @property
    def regressions(self) -> list[str]:
        """The nodes whose likelihood is not a function of counts and moments."""
        return [n for n, cpd in self._cpds.items() if cpd.is_regression]

    def rows(self, data: Any) -> Any:
        """Data read with the variables of this network: its states in its order."""
        return rows_with(data, self._variables, "network")

    def is_summed(self, data: Any) -> bool:
        """Whether there are statistics instead of rows."""
        return data is None or isinstance(data, Statistics)

    def hides_columns(self, rows: Any) -> TypeGuard[RowsLike]:
        """Whether all columns are there but some that no row showed when the network was fitted, either."""
        if not self._hidden or self.is_summed(rows):
            return False
        lacking = set(self._cpds) - set(scan(rows).columns)
        return bool(lacking) and lacking <= self._hidden

    def summary(self, data: RowsLike | Statistics | None = None) -> Statistics:
        """The statistics of data that this network's questions need, over its own variables."""
        if data is None:
            if self._statistics is None:
                raise ModelError("this network was not fitted from data: give the data")
            return self._statistics
        if not isinstance(data, Statistics):
            gathered: Statistics = self.rows(data).gather([self._cpds[n].needs for n in self._dag.nodes])
            return gathered
        finite = {n: v for n, v in self._variables.items() if isinstance(v, Finite)}
        for name, variable in data.variables.items():
            if isinstance(variable, Finite) and name in finite and (unknown := set(variable.states) - set(finite[name].states)):
                raise DataError(f"the statistics hold the state {min(unknown)!r} of {name!r}, which the network does not know")
        return data.recoded(finite).with_variables(self.variables.values())

    def __eq__(self, other: object) -> bool:
        """Same graph, same variables, same parameters, shared by the same nodes."""
        if not isinstance(other, NetworkParts):
            return NotImplemented
        mine, theirs = ((bn._dag, bn._variables, bn.shared) for bn in (self, other))
        return mine == theirs and all(self[n].same(other[n]) for n in self)

    __hash__ = None  # type: ignore[assignment]

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        facts = []
        for name, cpd in list(self._cpds.items())[:limit]:
            v = self._variables[name]
            kind = quantity(v.n_states, "state") if isinstance(v, Finite) else v.word
            facts.append((name, kind, ", ".join(cpd.parents), f"{cpd.n_parameters:,}"))
        return [(["node", "type", "parents", "parameters"], facts)], and_more(len(self) - limit, "node")

    def _headline(self) -> str:
        sizes = {"node": len(self), "edge": len(self._dag.edges), "parameter": self.n_parameters}
        return f"BayesNet of {', '.join(quantity(n, noun) for noun, n in sizes.items())}; {self._fit_info}"


SomeNetwork = TypeVar("SomeNetwork", bound=NetworkParts)
"""A network of the kind that was given."""
