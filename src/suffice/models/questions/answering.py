"""The questions that a network answers.

Regressions become tables, Gaussians or densities before anything else (`exact.reduce_network`). `question` checks what is
asked and given. Then questions go to `exact`, draws to `sampling`, credible intervals to `intervals`, which take targets as names
and evidence as `Observed`.

Setting a variable from outside cuts it from its causes and leaves all others as they are (Pearl 2009, Causality, p. 70):

    p(v | do(x)) = Π p(vᵢ | parents of vᵢ) over the vᵢ that are not set, at the values of those that are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypedDict

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.variables import Finite
from suffice.errors import ArgumentError, ImpossibleEvidence, ModelError, listing, nearest
from suffice.errors.remedies import Remedy, query_by_draws
from suffice.families.categorical import Table
from suffice.families.protocol.family import Cpd
from suffice.graphs import Dag
from suffice.models.parts.closed_forms import advising
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.questions import exact, question
from suffice.models.questions.question import evidence_codes, one_of_interval_and_method

if TYPE_CHECKING:
    from suffice.engines.sequences.arrangement import Missing, Refuse
    from suffice.models.questions.answers import Distribution, Marginals, MostProbable
    from suffice.models.questions.influence import Influence, Tornado
    from suffice.models.questions.mixture import Mixture
    from suffice.models.questions.question import Given
    from suffice.numerics.inference.finite.junction_tree import JunctionTree
    from suffice.numerics.inference.sampling.sampling import Gibbs, LikelihoodWeighting


class Answering(NetworkParts):
    """What a `BayesNet` can be asked. `given` maps a finite variable to a state or to likelihoods, a real one to a number."""

    def query(
        self,
        targets: str | Sequence[str],
        given: Given = None,
        *,
        method: LikelihoodWeighting | Gibbs | None = None,
        interval: float | None = None,
        draws: int = 1000,
        seed: int = 0,
    ) -> Distribution | Mixture:
        """p(targets | given): a `Distribution` of finite targets, a `Mixture` (by `method`, of draws) where one is real.

        Likelihoods are a mapping with every state, or one number per state. `interval=0.95` adds the credible interval that the
        posterior of the parameters gives the answer, from `draws` draws. `seed` is for these and for `method`. A regression is
        drawn by the normal approximation of its posterior, N(estimate, covariance), dispersions held at their estimates; after
        EM the parameters are drawn together, by the inverse of the observed information, without fitting again (`how` says so).

        >>> import suffice as sf
        >>> asia = sf.load("asia")
        >>> round(asia.query("lung", given={"xray": "yes"})["yes"], 6)
        0.488711
        >>> asia.query(["lung", "tub"], given={"xray": {"yes": 0.7, "no": 0.2}}).probs.shape
        (2, 2)
        """
        names, evidence = question.checked_question(self, targets, given)
        if method is not None:
            if interval is not None:
                raise one_of_interval_and_method()
            from suffice.models.questions.sampling import drawn_answer

            return drawn_answer(self, names, evidence, method, seed)
        if interval is None:
            return exact.exact_answer(self, names, evidence)
        from suffice.models.questions.intervals import answer_with_interval

        answer: Distribution | Mixture = answer_with_interval(self, names, evidence, interval, draws, seed)
        return answer

    def marginals(
        self,
        given: Given = None,
        *,
        targets: str | Sequence[str] | None = None,
        method: LikelihoodWeighting | None = None,
        interval: float | None = None,
        draws: int = 1000,
        seed: int = 0,
        time_limit: float | None = None,
    ) -> Marginals:
        """p(x | given) of every node x, or of the targets, all at once through the junction tree.

        `interval=0.95` adds to each node the credible interval that `query` gives it, from `draws` draws of the parameters; nodes
        that can have none are told without one, with a note. So are those for which a `time_limit`, in seconds, leaves no time:
        the cheapest come first. `method=LikelihoodWeighting(10_000)` draws all nodes instead, each with its standard error,
        where the tree is too large; `seed` is for both.

        >>> import suffice as sf
        >>> round(sf.load("asia").marginals({"xray": "yes"})["tub"]["yes"], 6)
        0.092411
        >>> list(sf.load("asia").marginals(targets=["lung", "tub"]))
        ['lung', 'tub']
        """
        evidence, names = evidence_codes(self, given), question.checked_names(self, targets)
        if method is not None:
            if interval is not None:
                raise one_of_interval_and_method()
            from suffice.models.questions.sampling import drawn_marginals

            return drawn_marginals(self, evidence, method, seed).of_some(names)
        if interval is not None:
            from suffice.models.questions.marginal_intervals import marginals_with_intervals

            return marginals_with_intervals(self, evidence, interval, draws, seed, names, time_limit)
        drawn = f"draw one node at a time with {query_by_draws('node')}"
        with advising(lambda refused: f"observe {listing(refused.lacking)}, too, or {drawn}"):
            return exact.marginals(self, evidence).of_some(names)

    def log_prob_of(self, given: Given) -> float:
        """ln p(given), a density where it gives reals; −inf for what cannot be.

        >>> import suffice as sf
        >>> round(sf.load("asia").log_prob_of({"xray": "yes", "smoke": "no"}), 6)
        -3.368605
        """
        evidence = evidence_codes(self, given)
        with advising(lambda refused: exact.share_of_draws(refused, evidence)):
            return exact.log_prob_of(self, evidence)

    def contradiction(self, given: Given) -> dict[str, object]:
        """A part of the evidence that cannot be, and of which nothing can be left out; empty if all of it can be.

        >>> import suffice as sf
        >>> sf.load("asia").contradiction({"smoke": "yes", "tub": "yes", "either": "no"})
        {'tub': 'yes', 'either': 'no'}
        """
        left = dict(given or {})
        if self._is_possible(left):
            return {}
        for name in list(left):  # one after the other is left out, and stays out if the rest cannot be without it either
            rest = {n: value for n, value in left.items() if n != name}
            if not self._is_possible(rest):
                left = rest
        return left

    def _is_possible(self, given: Given) -> bool:
        try:
            return self.log_prob_of(given) > float("-inf")
        except ImpossibleEvidence:
            return False

    def most_probable(self, given: Given = None, targets: str | Sequence[str] | None = None) -> MostProbable:
        """The most probable states of all that is not observed (MPE), or of the targets with the rest summed out (MAP).

        >>> import suffice as sf
        >>> dict(sf.load("asia").most_probable({"xray": "yes"}, targets=["smoke", "lung"]))
        {'smoke': 'yes', 'lung': 'yes'}
        """
        if targets is None:
            evidence = evidence_codes(self, given)
            names = tuple(n for n in self.variables if not question.is_observed(self, n, evidence))
        else:
            names, evidence = question.checked_question(self, targets, given)
        drawn = f"take a few finite targets and draw them, {query_by_draws('targets', '.mode')}"
        with advising(lambda refused: f"observe {listing(refused.lacking)}, or {drawn}"):
            return exact.most_probable(self, names, evidence)

    def do(self, interventions: Mapping[str, object]) -> Self:
        """The network after setting variables from outside: nothing causes them any more, what they cause stays.

        A finite variable is set to a state, or to a distribution over its states. A real variable is set to a number and
        leaves the network: its value moves into the intercepts of its children.

        >>> import suffice as sf
        >>> asia = sf.load("asia")
        >>> asia.do({"bronc": "yes"}).query("smoke")["yes"], asia.do({"smoke": "yes"}).query("bronc")["yes"]
        (0.5, 0.6)
        """
        given = question.as_mapping(interventions, "an intervention")
        tables, values = _split(self, given)
        if not (kept := {n: v for n, v in self.variables.items() if n not in values}):
            raise ModelError("every variable of the network would be a fixed number: nothing is left to ask about")
        cpds: dict[str, Cpd] = {n: tables[n] if n in tables else _without(self[n], values) for n in kept}
        untouched = [n for n in kept if cpds[n] is self[n]]
        return self.of(
            Dag({n: cpd.parents for n, cpd in cpds.items()}),
            kept,
            cpds,
            estimate=self.estimate,
            fit_info=f"{self.fit_info}; then do({question.in_words(given)})",
            interventions={**self.interventions, **given},
            covariance=self.covariance_of(untouched),
            ties=[tie for tie in (tie.only(untouched) for tie in self.ties) if len(tie.nodes) > 1],
        )

    @one_blas_thread
    def entropy(self) -> float:
        """H(p) in nats, exactly, through the joint of each node's finite parents.

        >>> import suffice as sf
        >>> bn = sf.BayesNet("x", {"x": [0.5, 0.5]}, variables=[sf.Finite("x", ["a", "b"])])
        >>> round(bn.entropy(), 6)
        0.693147
        """
        from suffice.models.questions.expected import entropy_given_parents

        return float(sum(entropy_given_parents(self, name) for name in self))

    def influence(self, target: str, given: Given = None) -> Influence:
        """How much each other finite node says about a finite target: mutual information, and where its states would move it.

        >>> import suffice as sf
        >>> list(sf.load("asia").influence("lung", {"xray": "yes"}).information)[:2]
        ['either', 'smoke']
        """
        from suffice.models.questions.influence import influence

        return influence(self, target, given)

    def tornado(self, target: str, state: str, given: Given = None, *, level: float = 0.95) -> Tornado:
        """p(target = state | given) when one parameter goes to the ends of its credible interval, the rest of its row in
        proportion: exact, the widest swing first.

        >>> import suffice as sf
        >>> bn = sf.fit("rain -> wet", {"rain": ["no", "yes", "yes"], "wet": ["no", "yes", "yes"]}, prior=sf.BDeu(1))
        >>> str(bn.tornado("wet", "yes").bends[0])
        'p(rain=no)'
        """
        from suffice.models.questions.influence import tornado

        return tornado(self, target, state, given, level)

    def d_separated(self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether the graph says that a and b, names or sets of names, are independent given others.

        >>> import suffice as sf
        >>> sf.load("asia").d_separated("asia", "smoke"), sf.load("asia").d_separated("asia", "smoke", given="xray")
        (True, False)
        """
        return self.dag.d_separated(a, b, given)

    @property
    def junction_tree(self) -> JunctionTree:
        """What exact answers cost: the tree of the finite nodes, its largest product and its memory. No table is made for it.

        >>> import suffice as sf
        >>> sf.load("asia").junction_tree
        JunctionTree of 8 variables: treewidth 2, the largest product has 8 cells, all together 48; tables of 1008 B
        """
        way_out = "bn.do({{{}}}).junction_tree is that of questions that give it"
        with advising(lambda refused: way_out.format(", ".join(f"{n!r}: 0.0" for n in refused.lacking))):
            return self.compiled.tree

    @property
    def treewidth(self) -> int:
        """The size of the largest clique of the junction tree of the finite nodes, less one: an upper bound, as found.

        >>> import suffice as sf
        >>> sf.load("asia").treewidth
        2
        """
        return self.junction_tree.treewidth


def _split(bn: NetworkParts, interventions: Mapping[str, Any]) -> tuple[dict[str, Table], dict[str, float]]:
    """The tables that finite variables are set to, and the numbers of real ones."""
    tables, values = {}, {}
    for name, value in interventions.items():
        if name not in bn:
            raise question.unknown_node(bn, name)
        variable = bn.variables[name]
        if question.is_missing(value):
            states = f"a state, {listing(variable.states)}, or a distribution over them" if isinstance(variable, Finite) else ""
            raise ModelError(f"{name!r} cannot be set to {value}: set it to {states or 'a finite number'}, or leave it out")
        if not isinstance(variable, Finite):
            values[name] = question.finite_number(value, name)
        elif question.is_by_state(value):
            tables[name] = Table(variable, (), question.numbers_by_state(variable, value, "probabilities"))
        else:
            tables[name] = Table(variable, (), np.eye(variable.n_states)[question.code_of(variable, value)])
    return tables, values


def _without(cpd: Cpd, values: Mapping[str, float]) -> Cpd:
    """The CPD with those of its real parents that have values moved into the intercept; a regression of states, with all of its
    numbers set, is a table."""
    values = {p: values[p] for p in cpd.real_parents if p in values}
    trials = cpd.family.trials if cpd.is_regression else None
    if trials in values:
        raise ModelError(
            f"{trials!r} holds the trials of {cpd.child.name!r} and cannot be set: observe it instead, "
            f"{Remedy(f'given={{{trials!r}: {values[str(trials)]:g}}}', f'{trials}={values[str(trials)]:g} after the bar')}"
        )
    if not values:
        return cpd
    rest = cpd.without(values)
    return rest.closed_form() if isinstance(rest.child, Finite) and not rest.is_open else rest


class QueryOptions(TypedDict, total=False):
    """What `query` takes besides targets and evidence."""

    method: LikelihoodWeighting | Gibbs | None
    """How the answer is drawn, where an exact one costs too much."""
    interval: float | None
    """The level of the credible interval of the answer."""
    draws: int
    """Draws of the parameters for it."""
    seed: int
    """The same seed gives the same draws."""


class PredictOptions(TypedDict, total=False):
    """What `predict` takes besides rows and a target."""

    method: LikelihoodWeighting | None
    """How rows without a formula are drawn."""
    seed: int
    """The same seed gives the same draws."""
    unknown: Refuse | Missing
    """What becomes of a state that the network does not know."""


class ProbabilityOptions(PredictOptions, total=False):
    """What `predict_proba` takes besides rows and a target."""

    interval: float | None
    """The level of the credible intervals of the probabilities."""
    draws: int
    """Draws of the parameters for them."""


class ImputeOptions(TypedDict, total=False):
    """What `impute` takes besides rows."""

    joint: bool
    """Whether the cells of a row are filled by the states that are most probable together."""
    draws: int | None
    """How many frames are drawn, instead of one of the most probable cells."""
    redraw: bool | None
    """Whether the parameters are drawn anew for each of them."""
    seed: int
    """The same seed gives the same draws."""
    unknown: Refuse | Missing
    """What becomes of a state that the network does not know."""


def refuse_others(call: str, given: Mapping[str, Any], kind: type) -> None:
    """Refuse keywords that a call does not have, with the one that may have been meant.

    >>> refuse_others("query", {"intervall": 0.9}, QueryOptions)
    Traceback (most recent call last):
    suffice.errors.ArgumentError: query takes no intervall=; did you mean 'interval'?
    """
    known = kind.__annotations__
    for name in given:
        if name not in known:
            raise ArgumentError(f"{call} takes no {name}={nearest(name, known)}")
