"""The questions that a network answers.

Regressions become tables, Gaussians or densities before anything else (`regressions.reduced`). Then questions go to `hybrid`,
sampling to `approximate`, credible intervals to `intervals`: each has functions of the same names, which take targets as names
and evidence as `Observed`. What else may be special about a question is in `question`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from suffice.blas import one_blas_thread
from suffice.engines.sequences.gaps import REFUSE, Missing, Refuse
from suffice.errors import ModelError, listed
from suffice.models.questions import hybrid, question
from suffice.models.questions.evidence import observed
from suffice.models.questions.regressions import NoFormula, advising
from suffice.remedies import query_by_draws

if TYPE_CHECKING:
    from suffice.argument_types import ColumnOfAnswers, RowsLike
    from suffice.inference.finite.junction_tree import JunctionTree
    from suffice.inference.sampling.sampling import Gibbs, LikelihoodWeighting
    from suffice.models.bayes_net import BayesNet
    from suffice.models.questions.answers import Distribution, Marginals, MostProbable
    from suffice.models.questions.evidence import Given
    from suffice.models.questions.influence import Influence, Tornado
    from suffice.models.questions.mixture import Mixture


class Answering:
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
        bn = _network(self)
        names, evidence = question.checked_targets(bn, targets), observed(bn, given)
        question.check_not_observed(bn, names, evidence)
        if interval is not None and method is not None:
            raise ModelError("an interval comes from exact answers at draws of the parameters: give interval or method, not both")
        if method is not None:
            from suffice.models.questions import approximate

            return approximate.query(bn, names, evidence, method, seed)
        if interval is not None:
            from suffice.models.questions import intervals

            found: Distribution | Mixture = intervals.query(bn, names, evidence, interval, draws, seed)
            return found
        if len(names) == 1 and question.is_number_without_rates(bn, names[0]):
            return question.regressed(bn, names[0], evidence)
        try:
            small, known = question.without_regressions(bn, names, evidence)
        except NoFormula:
            relevant: Distribution | Mixture = question.query_of_relevant(bn, names, evidence)
            return relevant
        answer: Distribution | Mixture = hybrid.query(small, names, known)
        return answer

    def marginals(self, given: Given = None, *, interval: float | None = None, draws: int = 1000, seed: int = 0) -> Marginals:
        """p(x | given) of every node x, all at once through the junction tree.

        `interval=0.95` adds to each node the credible interval that `query` gives it, from `draws` draws of the parameters; nodes
        that can have none are told without one, with a note.

        >>> import suffice as sf
        >>> round(sf.load("asia").marginals({"xray": "yes"})["tub"]["yes"], 6)
        0.092411
        """
        bn = _network(self)
        if interval is not None:
            from suffice.models.questions import intervals

            return intervals.marginals(bn, observed(bn, given), interval, draws, seed)
        drawn = f"draw one node at a time with {query_by_draws('node')}"
        with advising(lambda refused: f"observe {listed(refused.lacking)}, too, or {drawn}"):
            return question.marginals(bn, observed(bn, given))

    def log_prob_of(self, given: Given) -> float:
        """ln p(given), a density where it gives reals; −inf for what cannot be.

        >>> import suffice as sf
        >>> round(sf.load("asia").log_prob_of({"xray": "yes", "smoke": "no"}), 6)
        -3.368605
        """
        bn = _network(self)
        evidence = observed(bn, given)
        with advising(lambda refused: question.share_of_draws(refused, evidence)):
            return hybrid.log_prob_of(*question.without_regressions(bn, (), evidence)) if evidence.given else 0.0

    def most_probable(self, given: Given = None, targets: str | Sequence[str] | None = None) -> MostProbable:
        """The most probable states of all that is not observed (MPE), or of the targets with the rest summed out (MAP).

        >>> import suffice as sf
        >>> dict(sf.load("asia").most_probable({"xray": "yes"}, targets=["smoke", "lung"]))
        {'smoke': 'yes', 'lung': 'yes'}
        """
        bn = _network(self)
        evidence = observed(bn, given)
        if targets is None:
            names = tuple(n for n in bn.variables if not question.is_observed(bn, n, evidence))
        else:
            names = question.checked_targets(bn, targets)
            question.check_not_observed(bn, names, evidence)
        drawn = f"take a few finite targets and draw them, {query_by_draws('targets', '.mode')}"
        with advising(lambda refused: f"observe {listed(refused.lacking)}, or {drawn}"):
            small, known = question.without_regressions(bn, names, evidence)
            return hybrid.most_probable(small, names, known)

    @one_blas_thread
    def predict_proba(
        self,
        rows: Any,
        target: str,
        *,
        method: LikelihoodWeighting | None = None,
        interval: float | None = None,
        draws: int = 1000,
        seed: int = 0,
        unknown: Refuse | Missing = REFUSE,
    ) -> Any:
        """p(target | the other cells of a row), for each row; a column per state, in the kind of frame that came in.

        Any cells may be missing. A row that is impossible under the network has NaN, with a note. Rows without a formula, as
        where a regression lacks a number, are refused; `method=LikelihoodWeighting(n)` draws for them, and leaves others exact.
        So are states that the network does not know; `unknown=Missing()` takes their cells for missing, with a note.

        `interval=0.95` adds the ends of a credible interval of each probability, from `draws` draws of the parameters.

        >>> import suffice as sf
        >>> sf.load("asia").predict_proba({"xray": ["yes", None]}, "lung")["yes"].round(6)
        array([0.488711, 0.055   ])
        """
        from suffice.models.rows.predict import predict_proba

        how: dict[str, Any] = {"method": method, "interval": interval, "draws": draws, "seed": seed, "unknown": unknown}
        return predict_proba(_network(self), rows, target, **how)

    @overload
    def predict(
        self,
        rows: Mapping[str, object],
        target: str,
        *,
        method: LikelihoodWeighting | None = ...,
        seed: int = ...,
        unknown: Refuse | Missing = ...,
    ) -> ColumnOfAnswers: ...
    @overload
    def predict(
        self,
        rows: RowsLike,
        target: str,
        *,
        method: LikelihoodWeighting | None = ...,
        seed: int = ...,
        unknown: Refuse | Missing = ...,
    ) -> Any: ...
    @one_blas_thread
    def predict(
        self,
        rows: Any,
        target: str,
        *,
        method: LikelihoodWeighting | None = None,
        seed: int = 0,
        unknown: Refuse | Missing = REFUSE,
    ) -> Any:
        """The most probable state of the target in each row given its other cells (a real target: its mean), as one column.

        `method`, `seed` and `unknown` are those of `predict_proba`.

        >>> import suffice as sf
        >>> list(sf.load("asia").predict({"dysp": ["yes", None]}, "bronc"))
        ['yes', 'no']
        """
        from suffice.models.rows.predict import predict

        return predict(_network(self), rows, target, method=method, seed=seed, unknown=unknown)

    @one_blas_thread
    def impute(
        self,
        rows: Any,
        *,
        joint: bool = False,
        draws: int | None = None,
        redraw: bool | None = None,
        seed: int = 0,
        unknown: Refuse | Missing = REFUSE,
    ) -> Any:
        """The rows with each missing cell filled by what is most probable given the row's observed cells, or by its mean.

        `joint=True` fills all the missing cells of a row by the states that are most probable together. `draws=5` gives a list
        of five filled frames, the missing cells of a row drawn together from their posterior: multiple imputation. For each frame
        the parameters of a network that was fitted are drawn anew; `redraw=False` holds them at their estimates.
        `unknown=Missing()` fills cells with states that the network does not know, too; else they are refused.

        >>> import suffice as sf
        >>> sf.load("asia").impute({"dysp": ["yes", "no"], "bronc": [None, "no"]})["bronc"]
        ['yes', 'no']
        >>> [frame["bronc"] for frame in sf.load("asia").impute({"dysp": ["yes"], "bronc": [None]}, draws=3)]
        [['no'], ['yes'], ['yes']]
        """
        from suffice.models.rows.impute import impute

        return impute(_network(self), rows, joint=joint, draws=draws, redraw=redraw, seed=seed, unknown=unknown)

    def do(self, interventions: Mapping[str, object]) -> BayesNet:
        """The network after setting variables from outside: nothing causes them any more, what they cause stays.

        A finite variable is set to a state, or to a distribution over its states. A real variable is set to a number and
        leaves the network: its value moves into the intercepts of its children.

        >>> import suffice as sf
        >>> asia = sf.load("asia")
        >>> asia.do({"bronc": "yes"}).query("smoke")["yes"], asia.do({"smoke": "yes"}).query("bronc")["yes"]
        (0.5, 0.6)
        """
        from suffice.models.questions.intervene import do

        return do(_network(self), interventions)

    def influence(self, target: str, given: Given = None) -> Influence:
        """How much each other finite node says about a finite target: mutual information, and where its states would move it.

        >>> import suffice as sf
        >>> list(sf.load("asia").influence("lung", {"xray": "yes"}).information)[:2]
        ['either', 'smoke']
        """
        from suffice.models.questions.influence import influence

        return influence(_network(self), target, given)

    def tornado(self, target: str, state: str, given: Given = None, *, level: float = 0.95) -> Tornado:
        """p(target = state | given) when one parameter goes to the ends of its credible interval, the rest of its row in
        proportion: exact, the widest swing first.

        >>> import suffice as sf
        >>> bn = sf.fit("rain -> wet", {"rain": ["no", "yes", "yes"], "wet": ["no", "yes", "yes"]}, prior=sf.BDeu(1))
        >>> str(bn.tornado("wet", "yes").bends[0])
        'p(rain=no)'
        """
        from suffice.models.questions.influence import tornado

        return tornado(_network(self), target, state, given, level)

    def d_separated(self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether the graph says that a and b, names or sets of names, are independent given others.

        >>> import suffice as sf
        >>> sf.load("asia").d_separated("asia", "smoke"), sf.load("asia").d_separated("asia", "smoke", given="xray")
        (True, False)
        """
        return _network(self).dag.d_separated(a, b, given)

    @property
    def junction_tree(self) -> JunctionTree:
        """What exact answers cost: the tree of the finite nodes, its largest product and its memory. No table is made for it.

        >>> import suffice as sf
        >>> sf.load("asia").junction_tree
        JunctionTree of 8 variables: treewidth 2, the largest product has 8 cells, all together 48; tables of 1008 B
        """
        way_out = "bn.do({{{}}}).junction_tree is that of questions that give it"
        with advising(lambda refused: way_out.format(", ".join(f"{n!r}: 0.0" for n in refused.lacking))):
            return _network(self).compiled.tree

    @property
    def treewidth(self) -> int:
        """The size of the largest clique of the junction tree of the finite nodes, less one: an upper bound, as found.

        >>> import suffice as sf
        >>> sf.load("asia").treewidth
        2
        """
        return self.junction_tree.treewidth


def _network(asked: Any) -> BayesNet:
    """Who is asked: only networks are."""
    network: BayesNet = asked
    return network
