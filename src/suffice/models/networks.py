"""Networks, directed and undirected, as one asks them: each can be made of the other, and so they live together.

What they are is in `parts/network_parts.py` and `undirected/markov_parts.py`; here and in the classes they are made of are only
the questions' names, and each loads what it asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.pictures import Focus, Picture, Pictured, PicturedTable
from suffice.engines.scan import scan
from suffice.errors import MissingCells, ModelError, TooLarge
from suffice.families.protocol.family import Array
from suffice.graphs import Dag
from suffice.models.questions.answering import QueryOptions, refuse_others
from suffice.models.rows.row_answering import RowAnswering
from suffice.models.undirected.factor import log_prob_of_complete
from suffice.models.undirected.markov_parts import MarkovParts
from suffice.models.undirected.twin import Undirected

if TYPE_CHECKING:
    import pyarrow as pa

    from suffice.basis.argument_types import RowsLike
    from suffice.models.questions.answers import Distribution, Marginals
    from suffice.models.questions.mixture import Mixture
    from suffice.models.questions.question import Given
    from suffice.models.undirected.goodness_of_fit import GoodnessOfFit
    from suffice.numerics.inference.sampling.sampling import Gibbs
    from suffice.statistics import Statistics


class BayesNet(RowAnswering, PicturedTable):
    """A Bayesian network. `fit` makes one from data; this makes one from numbers.

    `cpds` holds for each node a table (an array, child on the last axis, parents in the order of the graph), a frame with one
    row per cell, a `Gaussian`, `Rates`, or a `Regression`. `variables` declares the nodes; a node with a `Gaussian` is `Real`
    without saying, one with `Rates` a `Count`, and one with a `Regression` what its family is of, if it has no states.

    >>> from suffice import Finite
    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> bn = BayesNet("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, variables=[x, y])
    >>> bn["y"].probs[1]
    array([0.2, 0.8])
    >>> bn.n_parameters
    3
    """

    def _scene(self) -> Picture:
        return self.dag._scene()

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
    def update(self, more: RowsLike | Statistics, *, decay: float = 1.0) -> Self:
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
        from suffice.models.estimation import update_network

        return update_network(self, more, decay)

    def moral(self) -> MarkovNet:
        """The same distribution as a Markov network on the moral graph, a factor for each node; tables only.

        >>> from suffice import Finite
        >>> bn = BayesNet("x", {"x": [0.25, 0.75]}, variables=[Finite("x", ["a", "b"])])
        >>> bn.moral().query("x").probs
        array([0.25, 0.75])
        """
        return MarkovNet.of_tables(self)


class MarkovNet(MarkovParts, Undirected[BayesNet]):
    """A Markov network. `fit` makes one from a `Graph`, a `LogLinear`, `Pairwise` or `Ising` model or `Features`; this makes one
    from numbers: `factors` maps sets of names to tables of ln φ, an axis per name, or lists pairs of them.

    >>> from suffice import Finite
    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> net = MarkovNet({("x", "y"): [[1.0, 0.0], [0.0, 1.0]], "y": [0.0, 0.5]}, variables=[x, y])
    >>> net.graph, round(net.log_normaliser, 6)
    (Graph('x -- y'), 2.287339)
    >>> round(net.query("x", given={"y": "yes"})["yes"], 6)
    0.731059
    """

    def _to_directed(self) -> BayesNet:
        tables = self.directed_tables[0]
        dag = Dag({n: table.parents for n, table in tables.items()})
        info = "the twin of a Markov network; arrows are an order of elimination"
        return BayesNet.of(dag, self.variables, tables, fit_info=info)

    @property
    def standard_errors(self) -> dict[Any, Array]:
        """The standard errors of the weights, in the same shape: from the inverse of the information, where the tree is small.

        >>> import suffice as sf
        >>> net = sf.fit(sf.LogLinear(["x"]), {"x": list("aaab")})
        >>> net.standard_errors[("x",)].round(4)  # ½ √(1/3 + 1/1)
        array([0.5774, 0.5774])
        """
        from suffice.models.undirected.goodness_of_fit import standard_errors

        return self.by_term(standard_errors(self))

    def log_prob(self, rows: RowsLike) -> Array:
        """ln p(row) of each row, in the order of the rows; where cells are missing, ln p(the cells that are there).

        >>> from suffice import Finite
        >>> x = Finite("x", ["a", "b"])
        >>> MarkovNet({"x": [0.0, -800.0]}, [x]).log_prob({"x": ["b", "a"]})
        array([-800.,    0.])
        """
        known = scan(rows)
        if any(n not in known.columns for n in self.variables):
            return super().log_prob(rows)
        known = self.rows(known)
        if any(known.missing.values()) or not known.n_rows:
            return super().log_prob(rows)
        return np.concatenate(list(known.map(partial(log_prob_of_complete, self.factors, self.log_normaliser))))

    def log_prob_of(self, given: Given) -> float:
        """ln p(given); −inf for what cannot be."""
        if isinstance(given, Mapping) and set(given) == set(self.variables) and all(isinstance(s, str) for s in given.values()):
            return float(self.log_prob({n: [s] for n, s in given.items()})[0])
        return super().log_prob_of(given)

    def log_likelihood(self, data: RowsLike | Statistics | None = None) -> float:
        """Σ ln p(row) over the data, from the tables of the factors alone; without data, over what the network was fitted from.

        Where cells are missing: Σ ln p(the cells of a row that are there).
        """
        try:
            seen = self.summary(data)
        except MissingCells:
            return self.directed.log_likelihood(data)
        total = -seen.weight * self.log_normaliser
        for f in self.factors:
            keys, N = seen.counts(f.names).listed() if f.names else (np.zeros(1, np.int64), np.array([seen.weight]))
            total += float(N @ f.log.reshape(-1)[keys])
        return total

    @cached_property
    def goodness_of_fit(self) -> GoodnessOfFit:
        """Deviance, Pearson's X², degrees of freedom and p values against the table of all variables together."""
        from suffice.models.undirected.goodness_of_fit import goodness_of_fit

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

    def query(self, targets: str | Sequence[str], given: Given = None, **how: Unpack[QueryOptions]) -> Distribution | Mixture:
        """p(targets | given), as `BayesNet.query`; where the tree of all is too large, that of what the evidence leaves."""
        refuse_others("query", how, QueryOptions)
        try:
            return self.directed.query(targets, given, **how)
        except TooLarge:
            from suffice.models.undirected.without_tree import near_net

            names = [targets] if isinstance(targets, str) else list(targets)
            if not given or any(n not in self for n in (*names, *given)):
                raise
            near, rest = near_net(self, names, given)
            if len(near) == len(self):
                raise
            return replace(near.directed.query(targets, rest, **how), given=dict(given))

    def marginals(self, given: Given = None, *, method: Gibbs | None = None, seed: int = 0) -> Marginals:
        """p(x | given) of every node x, all at once; `method=Gibbs(10_000)` draws them, each with its standard error, where the
        tree is too large.

        >>> import suffice as sf
        >>> found = sf.load("earthquake").moral().marginals({"Alarm": "True"})
        >>> round(found["JohnCalls"]["True"], 6)
        0.9
        """
        if method is None:
            return super().marginals(given)
        from suffice.models.undirected.without_tree import gibbs_marginals

        return gibbs_marginals(self, given or {}, method, seed)

    def _answering(self, rows: Any, target: str) -> BayesNet:
        """The network that predicts a target: of all variables, or, where its tree is too large, of the target's neighbours."""
        try:
            return self.directed
        except TooLarge:
            from suffice.models.undirected.without_tree import blanket_net

            near = blanket_net(self, target, rows) if target in self else None
            if near is None:
                raise
            return near.directed

    def sample(self, n: int, seed: int | None = None) -> pa.Table:
        """n rows drawn as an Arrow table: independent ones by the tree, where that is too large by Gibbs sampling.

        >>> from suffice import Finite
        >>> net = MarkovNet({"x": [0.0, -np.inf]}, [Finite("x", ["a", "b"])])
        >>> net.sample(2, seed=0)["x"].to_pylist()
        ['a', 'a']
        """
        try:
            return self.directed.sample(n, seed)
        except TooLarge:
            from suffice.models.undirected.without_tree import gibbs_rows

            return gibbs_rows(self, n, seed)
