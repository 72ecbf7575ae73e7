"""Bayesian networks: p(x) = Πᵢ p(xᵢ | parents of xᵢ), fitted or written down, and the questions one asks of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from suffice.blas import one_blas_thread
from suffice.display import Rows, Tabular
from suffice.engines.scan import is_spark_frame, scan
from suffice.engines.sequences.gaps import REFUSE, Missing, Refuse, word_of
from suffice.errors import DataError, MissingCells, ModelError, counted, nearest
from suffice.families.gathering.gathering import gather
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Array, Cpd, Estimate, Mean
from suffice.graphs import Dag
from suffice.graphs.directed import DagLike
from suffice.graphs.text import Edge
from suffice.models.estimates.hidden_numbers import n_conventions
from suffice.models.estimates.provenance import ASKED_OF_STEPS, Provenance
from suffice.models.estimates.sharing import Tie
from suffice.models.estimates.written import written_cpd
from suffice.models.questions.answering import Answering
from suffice.models.questions.answers import and_more
from suffice.pictures import Focus, Picture, Pictured, PicturedTable
from suffice.statistics import Statistics
from suffice.variables import Declaration, Finite, Variable, by_name

if TYPE_CHECKING:
    import pyarrow as pa

    from suffice.models.estimates.provenance import CovarianceSource
    from suffice.models.markov_net import MarkovNet
    from suffice.models.questions.compiled import Compiled


class BayesNet(Provenance, Tabular, Answering, PicturedTable):
    """A Bayesian network. `fit` makes one from data; this makes one from numbers.

    `cpds` holds for each node a table (an array, child on the last axis, parents in the order of the graph), a frame with one
    row per cell, a `Gaussian`, `Rates`, or a `Regression`. `variables` declares the nodes; a node with a `Gaussian` is `Real`
    without saying, one with `Rates` a `Count`, and one with a `Regression` what its family is of, if it has no states.

    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> bn = BayesNet("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, variables=[x, y])
    >>> bn["y"].probs[1]
    array([0.2, 0.8])
    >>> bn.n_parameters
    3
    """

    file_kind: ClassVar[str] = "bayes_net"
    _elsewhere: ClassVar[Mapping[str, str]] = ASKED_OF_STEPS

    def __init__(
        self, dag: DagLike, cpds: Mapping[str, object], variables: Mapping[str, Declaration] | Iterable[Variable] = ()
    ) -> None:
        graph = Dag(dag)
        if not isinstance(cpds, Mapping):
            raise ModelError(f"the distributions are given by node: {{'x': [0.5, 0.5], ...}}, not as {type(cpds).__name__}")
        declared: Any = variables
        if isinstance(variables, Mapping):  # as `scan` takes them, too: {name: [states]}
            declared = {n: Finite(n, v) if isinstance(v, (list, tuple)) else v for n, v in variables.items()}
        known = by_name(declared)
        for name in [*cpds, *known]:
            if name not in graph:
                raise ModelError(f"the graph has no node {name!r}{nearest(name, graph.nodes)}")
        lacking = [n for n in graph.nodes if n not in cpds]
        if lacking:
            raise ModelError(f"there is no distribution for the node {lacking[0]!r}")
        bound: dict[str, Cpd] = {}
        for name in graph.topological_order:
            bound[name] = written_cpd(name, cpds[name], graph.parents(name), known)
        self._set(graph, known, bound)

    def _set(
        self,
        dag: Dag,
        variables: Mapping[str, Variable],
        cpds: Mapping[str, Cpd],
        statistics: Statistics | None = None,
        prior: Prior | None = None,
        estimate: Estimate | None = None,
        fit_info: str = "given by hand",
        interventions: Mapping[str, Any] = MappingProxyType({}),
        incomplete: bool = False,
        hidden: Iterable[str] = (),
        ties: Iterable[Tie] = (),
        covariance: CovarianceSource = None,
    ) -> None:
        self._dag, self._variables, self._cpds = dag, dict(variables), {n: cpds[n] for n in variables}
        self._statistics, self._prior, self._estimate, self._fit_info = statistics, prior, estimate or Mean(), fit_info
        self._interventions, self._incomplete, self._hidden = dict(interventions), incomplete, frozenset(hidden)
        self._ties, self._known_parameters = tuple(ties), covariance

    @classmethod
    def of(cls, dag: Dag, variables: Mapping[str, Variable], cpds: Mapping[str, Cpd], **fitted: Any) -> BayesNet:
        """A network from finished CPDs; the way in for `fit` and for readers of files."""
        bn = cls.__new__(cls)
        bn._set(dag, variables, cpds, **fitted)
        return bn

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
    def variables(self) -> Mapping[str, Variable]:
        """The variables by name, in the order in which they were declared or stand in the file."""
        return MappingProxyType(self._variables)

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
        return listed - n_conventions(self._dag, self._variables, self._hidden)

    def __getitem__(self, name: str) -> Cpd:
        if name not in self._cpds:
            raise ModelError(f"the network has no node {name!r}{nearest(str(name), self._cpds)}")
        return self._cpds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cpds)

    def __len__(self) -> int:
        return len(self._cpds)

    def __contains__(self, name: object) -> bool:
        return name in self._cpds

    def __getstate__(self) -> dict[str, Any]:
        # the rows that a covariance would be found from stay behind
        return {k: v for k, v in self.__dict__.items() if k != "compiled"} | {"_known_parameters": self.found_covariance}

    @cached_property
    def compiled(self) -> Compiled:
        """The network as numbered factors, for inference; made when it is first needed."""
        from suffice.models.questions.compiled import Compiled

        return Compiled(self)

    def _scene(self) -> Picture:
        return self._dag._scene()

    def _notebook_picture(self) -> Picture:
        from suffice.models.questions.beliefs import notebook_picture

        return notebook_picture(self)

    @one_blas_thread
    def picture(
        self,
        given: Mapping[str, object] | None = None,
        *,
        do: Mapping[str, object] | None = None,
        interval: float | None = 0.95,
        against: Pictured | None = None,
        focus: Focus = None,
        steps: int = 1,
    ) -> Picture:
        """The network as a picture: what it believes of each node under evidence and interventions, with credible intervals.

        `against` another model or graph shows the edges of both instead, in four kinds of lines; `focus` the nodes at most
        `steps` edges from one node, or from some.

        >>> import suffice as sf
        >>> picture = sf.load("asia").picture({"xray": "yes"}, do={"smoke": "no"}, focus="lung")
        >>> [node.heading or node.name for node in picture.nodes]
        ['either', 'lung', 'do(smoke=no)']
        >>> round(picture.nodes[1].bars[0].value, 6), round(picture.nodes[1].bars[0].before, 6)
        (0.142286, 0.055)
        """
        if against is not None:
            if given or do:
                raise ModelError("a picture shows two graphs, or beliefs under evidence: against goes without given and do")
            return self._view(against, focus, steps)
        from suffice.models.questions.beliefs import belief_picture

        return belief_picture(self, given, do, interval, focus=focus, steps=steps)

    @one_blas_thread
    def log_prob(self, rows: Any, *, unknown: Refuse | Missing = REFUSE) -> Array:
        """ln p(row) of each row, in the order of the rows; where cells are missing, ln p(the cells that are there).

        A state that the network does not know is refused, or, by `unknown=Missing()`, taken for a missing cell, and noted.

        >>> bn = BayesNet("x", {"x": [0.25, 0.75]}, variables=[Finite("x", ["a", "b"])])
        >>> np.exp(bn.log_prob({"x": ["b", "a"]}))
        array([0.75, 0.25])
        """
        from suffice.models.rows.posteriors import log_prob_in_rows, log_prob_on_spark, observed_log_prob

        if is_spark_frame(rows):
            return log_prob_on_spark(self, rows, unknown)  # type: ignore[no-any-return]
        if word_of(unknown) == "missing" or self._hides_columns(rows):
            return observed_log_prob(self, rows, unknown)
        return log_prob_in_rows(self, self.rows(rows))

    @one_blas_thread
    def log_likelihood(self, data: Any = None) -> float:
        """Σ ln p(row) over the data, from its statistics alone; without data, over what the network was fitted from.

        Where cells are missing: Σ ln p(the cells of a row that are there), each row by inference.
        """
        from suffice.models.rows.posteriors import LogLikelihood, observed_log_likelihood

        if data is None:
            statistics = self.summary()
            statistics.require_all_cells("the log-likelihood of rows")
            return float(sum(cpd.log_likelihood_of_fit(statistics) for cpd in self._cpds.values()))
        if self._hides_columns(data):
            return observed_log_likelihood(self, data)
        if self._regressions and not isinstance(data, Statistics):
            rows = self.rows(data)
            threads = 1 if any(rows.missing.values()) else None  # the kernels have threads of their own
            return float(rows.fold(LogLikelihood(self), threads=threads))
        try:
            statistics = self.summary(data)
        except MissingCells:
            return observed_log_likelihood(self, data)
        statistics.require_all_cells("the log-likelihood of rows")
        return float(sum(cpd.log_likelihood(statistics.answer(cpd.needs)) for cpd in self._cpds.values()))

    @property
    def _regressions(self) -> list[str]:
        """The nodes whose likelihood is not a function of counts and moments."""
        return [n for n, cpd in self._cpds.items() if cpd.is_regression]

    def bic(self, data: Any = None) -> float:
        """log-likelihood − ½ k ln N: higher is better."""
        rows: Any = scan(data) if self._hides_columns(data) else self.summary(data) if self._is_summed(data) else self.rows(data)
        of = None if data is None else rows
        return self.log_likelihood(of) - 0.5 * self.n_parameters * float(np.log(rows.weight))

    def aic(self, data: Any = None) -> float:
        """log-likelihood − k: higher is better."""
        return self.log_likelihood(data) - self.n_parameters

    def cross_entropy(self, data: Any = None) -> float:
        """−(1/N) Σ ln p(row): nats per row that the data costs under this network."""
        if self._hides_columns(data):
            rows: Any = scan(data)
        else:
            rows = self.rows(data) if self._regressions and not self._is_summed(data) else self.summary(data)
        return -self.log_likelihood(None if data is None else rows) / float(rows.weight)

    @one_blas_thread
    def entropy(self) -> float:
        """H(p) in nats, exactly, through the joint of each node's finite parents.

        >>> bn = BayesNet("x", {"x": [0.5, 0.5]}, variables=[Finite("x", ["a", "b"])])
        >>> round(bn.entropy(), 6)
        0.693147
        """
        from suffice.models.estimates.divergence import entropy

        return entropy(self)

    @one_blas_thread
    def sample(self, n: int, seed: int | None = None) -> pa.Table:
        """n rows drawn from the network as an Arrow table, finite columns dictionary-encoded.

        >>> bn = BayesNet("x", {"x": [0.0, 1.0]}, variables=[Finite("x", ["a", "b"])])
        >>> bn.sample(2, seed=0)["x"].to_pylist()
        ['b', 'b']
        """
        from suffice.models.estimates.sampling import sample

        return sample(self, n, seed)

    @one_blas_thread
    def update(self, more: Any, *, decay: float = 1.0) -> BayesNet:
        """The network that all rows together give, old and new, with the same prior.

        With a `decay` below 1 the old rows weigh only so much of what they did, so that a network follows data that drift: 0.99
        for each update, or 0.99 ** days.

        A regression on numbers has no finite statistic, unless it is linear: then what is known of its parameters, a normal
        distribution around the estimate (Laplace), is the prior of the new rows, and a note says so.

        >>> from suffice import fit
        >>> bn = fit("x", {"x": ["a", "b"]})
        >>> bn.update({"x": ["b", "b"]})["x"].probs
        array([0.25, 0.75])
        >>> bn.update({"x": ["b", "b"]}, decay=0.5)["x"].probs.round(4)
        array([0.1667, 0.8333])
        """
        if self._incomplete:
            raise ModelError(
                "this network was fitted from incomplete data, whose statistics are expected, not seen: call "
                "em(dag, all_rows, start=bn), with the old rows and the new"
            )
        if self._statistics is None:
            raise ModelError(
                f"this network keeps no statistics that rows could be added to ({self._fit_info}): make it again from all rows, "
                "the old and the new, or take it as a prior of the new ones, fit(dag, rows, prior=BDe(bn, ess))"
            )
        if self._regressions:
            from suffice.models.estimates.updated import with_more_rows

            return with_more_rows(self, self._statistics, more)
        # inferred states may still widen
        free = {n: v for n, v in self._variables.items() if isinstance(v, Finite) and v.inferred and v.cuts is None}
        declared = self._variables | dict.fromkeys(free, Finite)
        new = more if isinstance(more, Statistics) else gather(self._read(more, declared), self._dag)
        from suffice.models.estimates.estimated import estimated

        seen = self._statistics.decay(decay) + new
        return estimated(self._dag, seen, self._prior, self._estimate, bound=True, shared=self.shared)

    def moral(self) -> MarkovNet:
        """The same distribution as a Markov network on the moral graph, a factor for each node; tables only.

        >>> bn = BayesNet("x", {"x": [0.25, 0.75]}, variables=[Finite("x", ["a", "b"])])
        >>> bn.moral().query("x").probs
        array([0.25, 0.75])
        """
        from suffice.models.undirected.moral import moral_net

        return moral_net(self)

    def rows(self, data: Any) -> Any:
        """Data read with the variables of this network: its states in its order."""
        return self._read(data, self._variables)

    def _is_summed(self, data: Any) -> bool:
        """Whether there are statistics instead of rows."""
        return data is None or isinstance(data, Statistics)

    def _hides_columns(self, rows: Any) -> bool:
        """Whether all columns are there but some that no row showed when the network was fitted, either."""
        if not self._hidden or self._is_summed(rows):
            return False
        lacking = set(self._cpds) - set(scan(rows).columns)
        return bool(lacking) and lacking <= self._hidden

    def _read(self, data: Any, variables: Mapping[str, Any]) -> Any:
        opened = scan(data)
        for name in self._cpds:
            if name not in opened.columns:
                raise DataError(f"the data has no column {name!r}, which the network names{nearest(name, opened.columns)}")
        return opened.with_variables(variables).select(list(self._cpds))

    def summary(self, data: Any = None) -> Statistics:
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
        if not isinstance(other, BayesNet):
            return NotImplemented
        if self._dag != other._dag or self._variables != other._variables or self.shared != other.shared:
            return False
        return all(type(self[n]) is type(other[n]) and self[n].same(other[n]) for n in self)

    __hash__ = None  # type: ignore[assignment]

    _lines, _indent = 40, "  "

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        facts = []
        for name, cpd in list(self._cpds.items())[:limit]:
            v = self._variables[name]
            kind = counted(v.n_states, "state") if isinstance(v, Finite) else v.word
            facts.append((name, kind, ", ".join(cpd.parents), f"{cpd.n_parameters:,}"))
        return [(["node", "type", "parents", "parameters"], facts)], and_more(len(self) - limit, "node")

    def _headline(self) -> str:
        sizes = {"node": len(self), "edge": len(self._dag.edges), "parameter": self.n_parameters}
        return f"BayesNet of {', '.join(counted(n, noun) for noun, n in sizes.items())}; {self._fit_info}"
