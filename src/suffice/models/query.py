"""Questions to a network: posteriors, all marginals, the probability of evidence, most probable states.

Regressions become tables, Gaussians or densities before anything else (`regressions.reduced`). Then questions go to `hybrid`,
sampling to `approximate`, credible intervals to `intervals`: each has functions of the same names, which take targets as names
and evidence as `Observed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import FitError, ModelError, listed, note
from suffice.families.responses import PoissonLog
from suffice.models import hybrid
from suffice.models.answers import Distribution, Marginals, MostProbable
from suffice.models.evidence import Given, Observed, impossible, observed, unknown_node
from suffice.models.no_formula import NoFormula, advising, no_formula, words
from suffice.models.regression_mixture import RegressionMixture
from suffice.models.regressions import REGRESSIONS, above, answerable, is_linear, is_open, reduced, without_formula
from suffice.statistics.configurations import sizes
from suffice.variables import Finite

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
    if _is_number_without_rates(bn, names[0]) and len(names) == 1:
        return _regressed(bn, names[0], evidence)
    if _cut_off(bn, names, evidence):
        return _query_of_relevant(bn, names, evidence)
    bn, evidence = without_regressions(bn, names, evidence)
    return _as_asked(hybrid.query(bn, names, evidence), names)


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
    answer = replace(_as_asked(hybrid.query(small, names, observed(small, kept)), names), given=evidence.given)
    return answer if isinstance(answer, Distribution) else replace(answer, log_prob_of_evidence=float("nan"))


def _is_number_without_rates(bn: BayesNet, name: str) -> bool:
    """Whether a node is a regression of a number that is neither Gaussian nor Poisson, whatever is observed."""
    cpd = bn[name]
    return is_open(cpd) and not isinstance(cpd.child, Finite) and not isinstance(cpd.family, PoissonLog)


def _regressed(bn: BayesNet, name: str, evidence: Observed) -> RegressionMixture:
    """A regression of a number whose numbers are given: mixed over its finite parents that are not, if nothing below is seen."""
    cpd, numbers = bn[name], _observed_in(bn, evidence)[0]
    below = [n for n in evidence.given if name in bn.dag.ancestors(n)]
    if below or any(p not in numbers for p in cpd.real_parents):
        raise _below(cpd, below) if below else no_formula(cpd, numbers)
    hidden = [v for v in cpd.finite_parents if not _is_observed(bn, v.name, evidence)]
    probs = query(bn, [v.name for v in hidden], evidence.given).probs.reshape(-1) if hidden else np.ones(1)
    codes = np.unravel_index(np.flatnonzero(probs), sizes(hidden)) if hidden else ()
    columns: dict[str, Any] = {p: np.full(np.count_nonzero(probs), numbers[p]) for p in cpd.real_parents}
    seen = {v.name: evidence.codes[bn.compiled.index[v.name]] for v in cpd.finite_parents}
    columns |= {n: np.full(np.count_nonzero(probs), code) for n, code in seen.items()}
    columns |= {v.name: c for v, c in zip(hidden, codes, strict=True)}
    return RegressionMixture(cpd, probs[probs > 0], columns, _known_log_prob(bn, evidence), given=evidence.given)


def _below(cpd: Any, below: Sequence[str]) -> NoFormula:
    """The refusal of a number below which something is observed."""
    fact = f"{cpd.child.name!r} is a {words(cpd)}, whose distribution given {listed(below)} below it has no formula"
    return NoFormula(fact, [], f"leave {listed(below)} out, or draw the answer with query(..., method=LikelihoodWeighting())")


def _known_log_prob(bn: BayesNet, evidence: Observed) -> float:
    """ln p(evidence), NaN where it has no formula; evidence that cannot be is refused."""
    try:
        found = log_prob_of(bn, evidence.given)
    except NoFormula:
        return float("nan")
    if found == NEVER:
        raise impossible(evidence)
    return found


def _check_families(bn: BayesNet, names: tuple[str, ...], evidence: Observed, method: Any, interval: float | None) -> None:
    """Refuse ways of answering that know no counts or no regressions, where the answer depends on one."""
    from suffice.inference.sampling import Gibbs
    from suffice.models.requisite import Question

    known = bn.compiled.counts.union(n for n in bn if isinstance(bn[n], REGRESSIONS))
    if not known or (interval is None and not isinstance(method, Gibbs)):
        return
    question = Question.of(bn, names, evidence)
    wrong = [n for n in question.nodes if n in known]
    if interval is not None:
        for name in wrong:
            _check_drawable(bn[name], question.observed)
    elif wrong:
        what = "regression" if isinstance(bn[wrong[0]], REGRESSIONS) else "count"
        raise ModelError(
            f"the answer depends on the {what} {wrong[0]!r}, which Gibbs sampling does not know; ask exactly, without a method, "
            "or by LikelihoodWeighting()"
        )


def _check_drawable(cpd: Any, known: Mapping[str, Any]) -> None:
    """Refuse an interval where the parameters of a count or a regression cannot be drawn, or no draw has a formula."""
    name, without = cpd.child.name, "ask without interval="
    if not isinstance(cpd, REGRESSIONS):
        raise ModelError(f"an interval cannot be found for answers that depend on the count {name!r}; {without}")
    about = f"the answer depends on {name!r}, a {words(cpd)}"
    if cpd.fitted is None:
        raise FitError(
            f"{about} that was not fitted to complete rows by itself (it was written down, learned by EM, or has a number that "
            f"do(...) set): its coefficients have no covariance to draw them by; {without}, or fit it to complete rows"
        )
    if not np.isfinite(cpd.fitted.covariance).all():
        raise FitError(f"{about} whose coefficients have no finite covariance to draw them by; {without}")
    lacking = [p for p in cpd.real_parents if p not in known]
    if is_linear(cpd):
        return
    if lacking:
        raise NoFormula(
            f"{about} on numbers of which {listed(lacking)} is not observed: there is no formula for the integral",
            lacking,
            f"observe {listed(lacking)}: an interval needs exact answers",
        )
    if not isinstance(cpd.child, Finite) and name not in known:
        raise ModelError(
            f"{about}: intervals are known of probabilities and of means of Gaussian numbers, not of its mean; {without}"
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
    return answer if isinstance(answer, Distribution) or answer.finite is None else replace(answer, asked=names)


def marginals(bn: BayesNet, given: Given = None) -> Marginals:
    """p(x | given) of every node x."""
    with advising(_one_at_a_time):
        return _marginals(bn, observed(bn, given))


def _marginals(bn: BayesNet, evidence: Observed) -> Marginals:
    """Those of the nodes that have a formula; the others are left out, with a note."""
    if not bn.compiled.open:
        found = hybrid.marginals(bn, evidence)
        return found.in_order(bn.variables) if bn.compiled.reals else found
    names = answerable(bn, *_observed_in(bn, evidence))
    small, known = without_regressions(bn, names, evidence)
    numbers = {n: answer for n in bn if n not in names and (answer := _regressed_or_none(bn, n, evidence)) is not None}
    left_out = [n for n in bn if n not in names and n not in numbers]
    if left_out:
        note(
            f"{listed(left_out)} left out: regressions on numbers that are not observed, and nodes below them, have no exact "
            f"distribution; draw it with query({left_out[0]!r}, ..., method=LikelihoodWeighting())"
        )
    return hybrid.marginals(small, known).only(names).with_numbers(numbers, bn)


def _regressed_or_none(bn: BayesNet, name: str, evidence: Observed) -> RegressionMixture | None:
    try:
        return _regressed(bn, name, evidence) if _is_number_without_rates(bn, name) else None
    except NoFormula:
        return None


def log_prob_of(bn: BayesNet, given: Given) -> float:
    """ln p(given); −inf for evidence that cannot be."""
    evidence = observed(bn, given)
    with advising(lambda refused: _share_of_draws(refused, evidence)):
        return hybrid.log_prob_of(*without_regressions(bn, (), evidence)) if evidence.given else 0.0


def _share_of_draws(refused: NoFormula, evidence: Observed) -> str:
    """How the probability of states can be drawn; a density cannot be."""
    observe = f"observe {listed(refused.lacking)}, too"
    if evidence.reals or evidence.soft:
        return f"{observe}: the density of numbers cannot be drawn"
    names, states = list(evidence.given), tuple(evidence.given.values())
    asked = (repr(names[0]), repr(states[0])) if len(names) == 1 else (repr(names), repr(states))
    return f"{observe}, or draw p(given) as query({asked[0]}, method=LikelihoodWeighting())[{asked[1]}]"


def _one_at_a_time(refused: NoFormula) -> str:
    drawn = "draw one node at a time with query(node, ..., method=LikelihoodWeighting())"
    return f"observe {listed(refused.lacking)}, too, or {drawn}"


def _no_mode_of_draws(refused: NoFormula) -> str:
    return (
        f"observe {listed(refused.lacking)}, or take a few finite targets and draw them, "
        "query(targets, ..., method=LikelihoodWeighting()).mode"
    )


def most_probable(bn: BayesNet, given: Given = None, targets: str | Sequence[str] | None = None) -> MostProbable:
    """The most probable states of the targets together; without targets, of all that is not observed."""
    evidence = observed(bn, given)
    if targets is None:
        names = tuple(n for n in bn.variables if not _is_observed(bn, n, evidence))
    else:
        names = checked_targets(bn, targets)
        check_not_observed(bn, names, evidence)
    with advising(_no_mode_of_draws):
        small, known = without_regressions(bn, names, evidence)
        return hybrid.most_probable(small, names, known)


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
