"""Questions to a network: posteriors, all marginals, the probability of evidence, most probable states.

Regressions become tables, Gaussians or densities before anything else (`regressions.reduced`). Then a question that names only
finite variables needs only the finite part of the network: no finite node has a real parent, so real nodes without evidence are
barren. Other questions go to `hybrid`, sampling to `approximate`, credible intervals to `intervals`: each has functions of the
same names, which take targets as names and evidence as `Observed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import ModelError, listed, note
from suffice.inference.most_probable import most_probable as explanation
from suffice.inference.posterior import conditional
from suffice.inference.posterior import log_prob_of as finite_log_prob
from suffice.models.answers import Distribution, Marginals, MostProbable
from suffice.models.evidence import Given, Observed, impossible, observed, unknown_node
from suffice.models.poisson_mixture import PoissonMixture
from suffice.models.regressions import REGRESSIONS, above, answerable, reduced, without_formula

if TYPE_CHECKING:
    from suffice.inference.sampling import Gibbs, LikelihoodWeighting
    from suffice.models.bayes_net import BayesNet

NEVER = float("-inf")
"""The log-probability of evidence that cannot be."""


def query(
    bn: BayesNet,
    targets: str | Sequence[str],
    given: Given = None,
    *,
    method: LikelihoodWeighting | Gibbs | None = None,
    interval: float | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> Any:
    """p(targets | given)."""
    names = checked_targets(bn, targets)
    evidence = observed(bn, given)
    check_not_observed(bn, names, evidence)
    if interval is not None and method is not None:
        raise ModelError("an interval comes from exact answers at draws of the parameters: give interval or method, not both")
    _check_families(bn, names, evidence, method, interval)
    if method is not None:
        from suffice.models import approximate

        return _as_asked(approximate.query(bn, names, evidence, method, seed), names)
    if interval is not None:
        from suffice.models import intervals

        return intervals.query(bn, names, evidence, interval, draws, seed)
    if _cut_off(bn, names, evidence):
        return _query_of_relevant(bn, names, evidence)
    bn, evidence = without_regressions(bn, names, evidence)
    return _exact(bn, names, evidence)


def _exact(bn: BayesNet, names: tuple[str, ...], evidence: Observed) -> Any:
    if needs_reals(bn, names, evidence):
        from suffice.models import hybrid

        return _as_asked(hybrid.query(bn, names, evidence), names)
    return _finite(bn, names, evidence)


def _cut_off(bn: BayesNet, names: tuple[str, ...], evidence: Observed) -> bool:
    """Whether the evidence needs an integral without a formula, but the answer may not depend on it."""
    numbers, seen = _observed_in(bn, evidence)
    needed = above(bn.dag, {*names, *numbers, *seen}) if bn.compiled.open else ()
    return any(n in needed and without_formula(bn, n, numbers) for n in bn.compiled.open)


def _query_of_relevant(bn: BayesNet, names: tuple[str, ...], evidence: Observed) -> Any:
    """The answer from the distributions that matter to it; the probability of all evidence is not known then."""
    from suffice.models.requisite import Question

    question = Question.of(bn, names, evidence)
    kept = {n: value for n, value in evidence.given.items() if n in question.observed or n in question.soft}
    small = reduced(bn, names, _observed_in(bn, observed(bn, kept))[0], needed=question.nodes)
    answer = replace(_exact(small, names, observed(small, kept)), given=evidence.given)
    return answer if isinstance(answer, Distribution) else replace(answer, log_prob_of_evidence=float("nan"))


def _check_families(bn: BayesNet, names: tuple[str, ...], evidence: Observed, method: Any, interval: float | None) -> None:
    """Refuse ways of answering that know no counts or no regressions, where the answer depends on one."""
    from suffice.inference.sampling import Gibbs
    from suffice.models.requisite import Question

    known = bn.compiled.counts.union(n for n in bn if isinstance(bn[n], REGRESSIONS))
    if not known or (interval is None and not isinstance(method, Gibbs)):
        return
    wrong = [n for n in Question.of(bn, names, evidence).nodes if n in known]
    if wrong:
        what = "regression" if isinstance(bn[wrong[0]], REGRESSIONS) else "count"
        how = "Gibbs sampling does" if interval is None else "intervals of answers do"
        raise ModelError(
            f"the answer depends on the {what} {wrong[0]!r}, which {how} not know yet; ask exactly, without a method, or by "
            "LikelihoodWeighting()"
        )


def without_regressions(bn: BayesNet, names: Iterable[str], evidence: Observed) -> tuple[BayesNet, Observed]:
    """The network and the evidence of a question that has no open regressions any more."""
    if not bn.compiled.open:
        return bn, evidence
    small = reduced(bn, names, *_observed_in(bn, evidence))
    return small, observed(small, evidence.given)


def _observed_in(bn: BayesNet, evidence: Observed) -> tuple[dict[str, float], list[str]]:
    """The numbers that are observed, and the finite variables of which there is evidence."""
    numbers = {bn.compiled.reals[m]: x for m, x in evidence.reals.items()}
    return numbers, [n for n in evidence.given if n not in numbers]


def _as_asked(answer: Any, names: tuple[str, ...]) -> Any:
    """The answer with the order of its targets, if some are finite and some real: it keeps them apart."""
    if isinstance(answer, (Distribution, PoissonMixture)) or answer.finite is None:
        return answer
    return replace(answer, asked=names)


def _finite(bn: BayesNet, names: Sequence[str], evidence: Observed) -> Distribution:
    compiled = bn.compiled
    variables = tuple(compiled.variables[n] for n in names)
    probs = conditional(compiled.network, [compiled.index[n] for n in names], evidence.codes, evidence.soft)
    if np.isnan(probs).any():
        raise impossible(evidence)
    return Distribution(variables, probs, given=evidence.given)


def marginals(bn: BayesNet, given: Given = None) -> Marginals:
    """p(x | given) of every node x."""
    evidence = observed(bn, given)
    if bn.compiled.open:
        return _marginals_beside_regressions(bn, evidence)
    compiled = bn.compiled
    if compiled.reals:
        from suffice.models import hybrid

        return hybrid.marginals(bn, evidence).in_order(bn.variables)
    answer = compiled.tree.marginals(evidence.codes, evidence.soft)
    if answer.log_prob == NEVER:
        raise impossible(evidence)
    return Marginals(compiled.variables, answer.probs, answer.start, answer.log_prob, evidence.given, index=compiled.index)


def _marginals_beside_regressions(bn: BayesNet, evidence: Observed) -> Marginals:
    """Those of the nodes that have a formula; the others are left out, with a note."""
    from suffice.models import hybrid

    names = answerable(bn, *_observed_in(bn, evidence))
    small, known = without_regressions(bn, names, evidence)
    left_out = [n for n in bn if n not in names]
    if left_out:
        note(
            f"{listed(left_out)} left out: regressions on numbers that are not observed, and nodes below them, have no exact "
            f"distribution; draw it with query({left_out[0]!r}, ..., method=LikelihoodWeighting())"
        )
    return hybrid.marginals(small, known).only(names)


def log_prob_of(bn: BayesNet, given: Given) -> float:
    """ln p(given); −inf for evidence that cannot be."""
    evidence = observed(bn, given)
    if not evidence.given:
        return 0.0
    bn, evidence = without_regressions(bn, (), evidence)
    if evidence.reals:
        from suffice.models import hybrid

        return hybrid.log_prob_of(bn, evidence)
    return finite_log_prob(bn.compiled.network, evidence.codes, evidence.soft)


def most_probable(bn: BayesNet, given: Given = None, targets: str | Sequence[str] | None = None) -> MostProbable:
    """The most probable states of the targets together; without targets, of all that is not observed."""
    evidence = observed(bn, given)
    if targets is None:
        names = tuple(n for n in bn.variables if not _is_observed(bn, n, evidence))
    else:
        names = checked_targets(bn, targets)
        check_not_observed(bn, names, evidence)
    bn, evidence = without_regressions(bn, names, evidence)
    if needs_reals(bn, names, evidence):
        from suffice.models import hybrid

        return hybrid.most_probable(bn, names, evidence)
    compiled = bn.compiled
    best = explanation(compiled.network, [compiled.index[n] for n in names], evidence.codes, evidence.soft)
    if best.log_prob == NEVER:
        raise impossible(evidence)
    states = {n: compiled.variables[n].states[code] for n, code in zip(names, best.codes.tolist(), strict=True)}
    return MostProbable(states, best.log_joint, best.log_prob, evidence.given)


def needs_reals(bn: BayesNet, names: Iterable[str], evidence: Observed) -> bool:
    """Whether a question is about real variables, in its targets or in its evidence."""
    return bool(evidence.reals) or any(n in bn.compiled.real_index for n in names)


def checked_targets(bn: BayesNet, targets: str | Sequence[str]) -> tuple[str, ...]:
    """The names that are asked for: at least one, each once, all known."""
    if isinstance(targets, str):
        names: tuple[str, ...] = (targets,)
    elif isinstance(targets, (set, frozenset)) or not isinstance(targets, Iterable):
        raise ModelError(f"targets are a name or a list of names, whose order is that of the axes; not {targets!r}")
    else:
        names = tuple(targets)
    if not names:
        raise ModelError("there is no target: name at least one variable")
    for name in names:
        if not isinstance(name, str) or name not in bn:
            raise unknown_node(bn, name)
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ModelError(f"the target {twice!r} is named twice")
    return names


def check_not_observed(bn: BayesNet, names: Iterable[str], evidence: Observed) -> None:
    """Refuse targets whose value is given."""
    known = [n for n in names if _is_observed(bn, n, evidence)]
    if known:
        raise ModelError(f"{listed(known)} is asked for and given at once; ask for what is not observed")


def _is_observed(bn: BayesNet, name: str, evidence: Observed) -> bool:
    """Whether its value is given. Likelihood evidence does not make it known: it is weighed in."""
    return name in evidence.given and bn.compiled.index.get(name) not in evidence.soft
