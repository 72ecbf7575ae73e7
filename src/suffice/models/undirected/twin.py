"""What all undirected models can be asked, by a directed twin.

A distribution whose graph has a triangulation of small cliques is also a Bayesian network on it: nodes are eliminated one by one,
and each is given those that are left of its neighbours. So there is no second inference: questions go to that network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, Unpack

import numpy as np

from suffice.basis.output.display import Tabular
from suffice.basis.pictures import Focus, Picture, Pictured, PicturedTable
from suffice.engines.data import Data
from suffice.engines.scan import rows_with
from suffice.errors import ModelError, quantity
from suffice.graphs import Graph
from suffice.models.parts.network_parts import Provenance
from suffice.models.questions.answering import ImputeOptions, PredictOptions, ProbabilityOptions, QueryOptions, refuse_others

if TYPE_CHECKING:
    import pyarrow as pa

    from suffice.basis.argument_types import RowsLike
    from suffice.basis.arrays import Array
    from suffice.models.questions.answers import Distribution, Marginals, MostProbable
    from suffice.models.questions.mixture import Mixture
    from suffice.models.questions.question import Given
    from suffice.models.rows.row_answering import RowAnswering
    from suffice.numerics.inference.finite.junction_tree import JunctionTree
    from suffice.statistics import Statistics


Twin = TypeVar("Twin", bound="RowAnswering")
"""The kind of network that answers."""


class UndirectedParts(Provenance, Tabular):
    """What undirected networks of rows are, whatever their variables."""

    variables: Mapping[str, Any]
    """The variables by name, in the order in which they were declared or stand in the file."""
    penalty: Any
    """The penalty it was fitted with."""
    _word: ClassVar[str]
    """What the model is called in refusals."""
    _lines, _indent = 40, "  "

    if TYPE_CHECKING:

        @property
        def graph(self) -> Graph: ...
        @property
        def n_parameters(self) -> int: ...
        def summary(self, data: Any = None) -> Statistics: ...

    def __len__(self) -> int:
        return len(self.variables)

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def rows(self, data: Any) -> Data:
        """Data read with the variables of this network: its states in its order."""
        return rows_with(data, self.variables, self._word)

    def _headline(self) -> str:
        sizes = {"variable": len(self), "edge": len(self.graph.edges), "parameter": self.n_parameters}
        return f"{type(self).__name__} of {', '.join(quantity(n, noun) for noun, n in sizes.items())}; {self.fit_info}"


class Undirected(UndirectedParts, PicturedTable, Generic[Twin]):
    """What a `MarkovNet` can be asked. A subclass has `graph` and `_to_directed`: the network that answers.

    `given` is that of `BayesNet.query`: a finite variable has a state or likelihoods, a real one a number.
    """

    file_kind: ClassVar[str]
    """What its files call it."""

    def _to_directed(self) -> Twin:
        """The same distribution as a Bayesian network on a triangulation; refused with its size where that is too large."""
        raise NotImplementedError

    @cached_property
    def directed(self) -> Twin:
        """The same distribution as a Bayesian network, on a triangulation of the graph; made when it is first needed.

        Its arrows are an order of elimination, not causes.
        """
        return self._to_directed()

    def to_bayes_net(self) -> Twin:
        """The same distribution as a Bayesian network with the same independences, which only a decomposable graph has."""
        if not self.graph.is_decomposable:
            raise ModelError(
                "no Bayesian network has the independences of this graph, which is not decomposable: a cycle has no chord; "
                ".directed is the same distribution on a triangulated graph"
            )
        return self.directed

    def _scene(self) -> Picture:
        return self.graph._scene()

    def picture(self, given: Given = None, *, against: Pictured | None = None, focus: Focus = None, steps: int = 1) -> Picture:
        """The network as a picture: what it believes of each node given evidence; or the edges of it `against` those of another.
        `focus` shows the nodes at most `steps` edges from one node, or from some.

        >>> import suffice as sf
        >>> picture = sf.load("asia").moral().picture({"xray": "yes"}, focus="lung")
        >>> len(picture.nodes), {edge.arrow for edge in picture.edges}
        (4, {False})
        """
        if against is not None:
            return self._view(against, focus, steps)
        from suffice.models.questions.beliefs import undirected_picture

        return undirected_picture(self, given, focus, steps)

    def separated(self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether the graph says that a and b, names or sets of names, are independent given others."""
        return self.graph.separated(a, b, given)

    def query(self, targets: str | Sequence[str], given: Given = None, **how: Unpack[QueryOptions]) -> Distribution | Mixture:
        """p(targets | given), as `BayesNet.query`."""
        refuse_others("query", how, QueryOptions)
        return self.directed.query(targets, given, **how)

    def marginals(self, given: Given = None) -> Marginals:
        """p(x | given) of every node x, all at once."""
        return self.directed.marginals(given)

    def log_prob_of(self, given: Given) -> float:
        """ln p(given), a density where it gives reals; −inf for what cannot be."""
        return self.directed.log_prob_of(given)

    def contradiction(self, given: Given) -> dict[str, object]:
        """A part of the evidence that cannot be, and of which nothing can be left out; empty if all of it can be."""
        return self.directed.contradiction(given)

    def most_probable(self, given: Given = None, targets: str | Sequence[str] | None = None) -> MostProbable:
        """The most probable states of all that is not observed, or of the targets with the rest summed out."""
        return self.directed.most_probable(given, targets)

    def predict_proba(self, rows: RowsLike, target: str, **how: Unpack[ProbabilityOptions]) -> Any:
        """p(target | the other cells of a row), for each row, as `BayesNet.predict_proba`; where the tree of a `MarkovNet` is too
        large, of rows that show all neighbours."""
        refuse_others("predict_proba", how, ProbabilityOptions)
        return self._answering(rows, target).predict_proba(rows, target, **how)

    def predict(self, rows: RowsLike, target: str, **how: Unpack[PredictOptions]) -> Any:
        """The most probable state of the target in each row given its other cells (a real target: its mean), as one column; as
        `predict_proba`."""
        refuse_others("predict", how, PredictOptions)
        return self._answering(rows, target).predict(rows, target, **how)

    def _answering(self, rows: Any, target: str) -> Twin:
        """The network that predicts a target."""
        return self.directed

    def impute(self, rows: RowsLike, **how: Unpack[ImputeOptions]) -> Any:
        """The rows with each missing cell filled, as `BayesNet.impute`."""
        refuse_others("impute", how, ImputeOptions)
        return self.directed.impute(rows, **how)

    def log_prob(self, rows: RowsLike) -> Array:
        """ln p(row) of each row, in the order of the rows; where cells are missing, ln p(the cells that are there)."""
        return self.directed.log_prob(rows)

    def log_likelihood(self, data: RowsLike | Statistics | None = None) -> float:
        """Σ ln p(row) over the data."""
        return self.directed.log_likelihood(data)

    def bic(self, data: RowsLike | Statistics | None = None) -> float:
        """log-likelihood − ½ k ln N: higher is better."""
        seen = self.summary(data)
        return self.log_likelihood(seen) - 0.5 * self.n_parameters * float(np.log(seen.weight))

    def aic(self, data: RowsLike | Statistics | None = None) -> float:
        """log-likelihood − k: higher is better."""
        return self.log_likelihood(data) - self.n_parameters

    def entropy(self) -> float:
        """H(p) in nats."""
        return self.directed.entropy()

    def sample(self, n: int, seed: int | None = None) -> pa.Table:
        """n independent rows drawn from the model as an Arrow table, finite columns dictionary-encoded."""
        return self.directed.sample(n, seed)

    def to_dot(self) -> str:
        """The graph in the language of Graphviz."""
        return self.graph.to_dot()

    @property
    def junction_tree(self) -> JunctionTree:
        """What exact answers cost: the tree of the finite nodes, its largest product and its memory."""
        return self.directed.junction_tree

    @property
    def treewidth(self) -> int:
        """The size of the largest clique of the junction tree, less one: an upper bound, as found."""
        return self.junction_tree.treewidth
