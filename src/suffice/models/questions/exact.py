"""Exact answers. Regressions become tables, Gaussians or densities first; an answer may not depend on those that have no formula,
or be such a regression itself. What is left is a finite or a conditional Gaussian network, which has closed answers.

A regression is *open* where it has a place in exact inference only once its numbers are known. Given them

    a finite child                     is a table over its finite parents,
    a number that is observed          weighs its finite parents by its density there,
    a Poisson count                    has rates over its finite parents,
    what is neither asked for nor observed, nor above something that is, may be left out.

`reduce_network` makes these changes for one question. What they leave over, an integral over a number that is not observed, has
no formula: that is refused, with a way out that depends on what was asked, and drawn instead where the user asks for it.

A question that names only finite variables needs only the finite part of the network: no finite node has a real parent, so real
nodes without evidence are barren. Each function takes targets as names and evidence as `Observed`, both already checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.variables import Distributed
from suffice.errors import ModelError, TooLarge, listing, note
from suffice.errors.remedies import BY_DRAWS, BY_WEIGHTING, Remedy
from suffice.families.design import configurations
from suffice.graphs import Dag
from suffice.models.parts.closed_forms import NoFormula, as_closed_form, density, no_formula, stand_in, words
from suffice.models.parts.network_parts import NetworkParts, SomeNetwork
from suffice.models.questions.answers import Distribution, Marginals, MostProbable
from suffice.models.questions.densities import MixtureParts, NormalParts, PoissonParts, ResponseParts
from suffice.models.questions.mixture import DistributionParts, Mixture
from suffice.models.questions.question import Observed, Question, evidence_codes, impossible, is_observed
from suffice.numerics.inference.finite.logs import NEVER
from suffice.numerics.inference.finite.questions import posterior
from suffice.numerics.inference.numbers import hybrid
from suffice.numerics.inference.numbers.gaussian import COLLINEAR, OVERFLOW, HiddenCount
from suffice.numerics.inference.numbers.hybrid import Hybrid, ManyConfigurations, Mixed, MixtureMode, Trouble, evidence_factors
from suffice.statistics.counts import checked_cells


def exact_answer(bn: NetworkParts, names: Sequence[str], evidence: Observed) -> Distribution | Mixture:
    """p(names | evidence), exactly; `checked_question` has checked both."""
    if not bn.compiled.open:
        return closed_answer(bn, names, evidence)
    if len(names) == 1 and bn[names[0]].is_regression and not bn[names[0]].family.closes:
        return regression_mixture(bn, names[0], evidence)
    try:
        small, known = without_regressions(bn, names, evidence)
    except NoFormula:  # the answer may not depend on that integral: then ln p(all evidence) alone is not known
        question = Question.of(bn, names, evidence)
        kept = {n: value for n, value in evidence.given.items() if n in question.observed or n in question.soft}
        small = reduce_network(bn, names, _observed_in(bn, evidence_codes(bn, kept))[0], needed=question.nodes)
        answer = replace(closed_answer(small, names, evidence_codes(small, kept)), given=evidence.given)
        return answer if isinstance(answer, Distribution) else replace(answer, log_prob_of_evidence=float("nan"))
    return closed_answer(small, names, known)


def regression_mixture(bn: NetworkParts, name: str, evidence: Observed) -> Mixture:
    """A regression of a number that is neither Gaussian nor Poisson: mixed over its finite parents that are not given, if its
    numbers are and nothing below it is seen."""
    cpd: Any = bn[name]
    numbers = _observed_in(bn, evidence)[0]
    if below := [n for n in evidence.given if name in bn.dag.ancestors(n)]:
        fact = f"{name!r} is a {words(cpd)}, whose distribution given {listing(below)} below it has no formula"
        raise NoFormula(fact, [], f"leave {listing(below)} out, or draw the answer with {BY_DRAWS}")
    if any(p not in numbers for p in cpd.real_parents):
        raise no_formula(cpd, numbers)
    hidden = [v for v in cpd.finite_parents if not is_observed(bn, v.name, evidence)]
    mixed: Any = exact_answer(bn, [v.name for v in hidden], evidence) if hidden else None
    probs = np.ones(1) if mixed is None else mixed.probs.reshape(-1)
    seen = {v.name: evidence.codes[bn.compiled.index[v.name]] for v in cpd.finite_parents}
    columns, _ = configurations(hidden, seen | {p: numbers[p] for p in cpd.real_parents})
    some = {n: column[probs > 0] for n, column in columns.items()}
    weights = probs[probs > 0]
    parts = ResponseParts(cpd, some, len(weights))
    try:
        log_prob = log_prob_of(bn, evidence)
    except NoFormula:
        log_prob = float("nan")
    _check_possible(log_prob, evidence)
    return Mixture((name,), weights, parts, log_prob_of_evidence=log_prob, given=evidence.given)


def log_prob_of(bn: NetworkParts, evidence: Observed) -> float:
    """ln p(evidence), a density where it gives reals."""
    if not evidence.given:
        return 0.0
    small, known = without_regressions(bn, (), evidence)
    with _part(small, (), known) as part:
        return posterior(part.network, (), known.codes, evidence_factors(part, known)).log_prob


def without_regressions(bn: SomeNetwork, names: Iterable[str], evidence: Observed) -> tuple[SomeNetwork, Observed]:
    """The network and the evidence of a question that has no open regressions any more."""
    if not bn.compiled.open:
        return bn, evidence
    small = reduce_network(bn, names, *_observed_in(bn, evidence))
    return small, evidence_codes(small, evidence.given)


def _observed_in(bn: NetworkParts, evidence: Observed) -> tuple[dict[str, float], list[str]]:
    """The numbers that are observed, and the finite variables of which there is evidence."""
    numbers = {bn.compiled.reals[m]: x for m, x in evidence.reals.items()}
    return numbers, [n for n in evidence.given if n not in numbers]


def marginals(bn: NetworkParts, evidence: Observed) -> Marginals:
    """Those of the nodes that have a formula; the others are left out, with a note."""
    if not bn.compiled.open:
        found = closed_marginals(bn, evidence)
        return found.of_nodes(bn.variables) if bn.compiled.reals else found
    observed, seen = _observed_in(bn, evidence)
    hidden = {n for n in bn.compiled.open if without_formula(bn, n, observed)}
    counts = bn.compiled.counts - set(observed)
    hidden |= {n for n in bn if not counts.isdisjoint(bn.dag.parents(n))}
    names = [n for n in bn if hidden.isdisjoint(above(bn.dag, {n, *observed, *seen}))]
    small, known = without_regressions(bn, names, evidence)
    numbers: dict[str, Mixture] = {}
    for n in bn:
        if n not in names and bn[n].is_regression and not bn[n].family.closes:
            with suppress(NoFormula):
                numbers[n] = regression_mixture(bn, n, evidence)
    if left_out := [n for n in bn if n not in names and n not in numbers]:
        name = left_out[0]
        python = f"it with query({name!r}, ..., method=LikelihoodWeighting())"
        note(
            f"{listing(left_out)} left out: regressions on numbers that are not observed, and nodes below them, have no exact "
            f"distribution; draw {Remedy(python, f'that of {name!r} with --method lw:10000')}"
        )
    return closed_marginals(small, known).of_nodes((n for n in bn if n in names or n in numbers), numbers)


def share_of_draws(refused: NoFormula, evidence: Observed) -> str:
    """How the probability of states can be drawn; a density cannot be."""
    observe = f"observe {listing(refused.lacking)}, too"
    if evidence.reals or evidence.soft:
        return f"{observe}: the density of numbers cannot be drawn"
    names, states = list(evidence.given), tuple(evidence.given.values())
    asked = (repr(names[0]), repr(states[0])) if len(names) == 1 else (repr(names), repr(states))
    drawn = Remedy(f"query({asked[0]}, method=LikelihoodWeighting())[{asked[1]}]", "suffice query --method lw:10000")
    return f"{observe}, or draw p(given) as {drawn}"


def closed_answer(bn: NetworkParts, targets: Sequence[str], evidence: Observed) -> Distribution | Mixture:
    """p(targets | evidence): a mixture where a target is real, of Poisson distributions where it is a count."""
    compiled = bn.compiled
    finite = [compiled.index[n] for n in targets if n in compiled.index]
    variables = tuple(compiled.variables[compiled.finite[v]] for v in finite)
    reals = [n for n in targets if n in compiled.real_index]
    count = next((n for n in targets if n in compiled.counts), None)
    if count is not None and len(targets) > 1:
        raise ModelError(
            f"{count!r} is {_kind(bn, count)}, which is asked for alone: {targets[targets[0] == count]!r} is another question"
        )
    with _part(bn, reals, evidence) as part:
        if not reals:
            said = evidence_factors(part, evidence) if evidence.reals or evidence.soft else ()
            probs = posterior(part.network, finite, evidence.codes, said, everywhere=False).probs
            if np.isnan(probs).any():
                raise impossible(evidence)
            return Distribution(variables, probs, given=evidence.given)
        checked_cells(variables, "the answer")
        found = hybrid.real_posterior(part, [compiled.real_index[n] for n in reals], finite, evidence)
    _check_possible(found.log_prob, evidence)
    if not finite:
        return _mixture(bn, reals, found, evidence)
    shape = tuple(v.n_states for v in variables)
    cells = np.ravel_multi_index(tuple(found.codes.T), shape)
    probs = np.bincount(cells, found.weights, int(np.prod(shape))).astype(np.float64).reshape(shape)
    finite_part = Distribution(variables, probs, given=evidence.given)
    return _mixture(bn, reals, found, evidence, cells=cells, finite=finite_part, asked=tuple(targets))


def closed_marginals(bn: NetworkParts, evidence: Observed) -> Marginals:
    """p(x | evidence) of every node x. A real node that is observed has all of its probability at its value."""
    compiled = bn.compiled
    with _part(bn, compiled.reals, evidence) as part:
        finite = hybrid.finite_marginals(part, evidence, lambda: compiled.tree)
        _check_possible(finite.log_prob, evidence)
        found = hybrid.real_marginals(part, evidence) if part.nodes else {}
    for m, x in evidence.reals.items():
        found[m] = Mixed(np.ones(1), np.array([[x]]), np.zeros((1, 1, 1)), np.zeros((1, 0), np.int64), finite.log_prob)
    reals = {compiled.reals[m]: _mixture(bn, (compiled.reals[m],), found[m], evidence) for m in sorted(found)}
    return Marginals(
        compiled.variables, finite.probs, finite.start, finite.log_prob, evidence.given, reals=reals, index=compiled.index
    )


def most_probable(bn: NetworkParts, targets: Sequence[str], evidence: Observed) -> MostProbable:
    """Where the joint density of the targets is highest, what is neither target nor observed summed out."""
    bn, evidence = without_regressions(bn, targets, evidence)
    compiled = bn.compiled
    for count in (n for n in targets if n in compiled.counts):
        raise ModelError(
            f"the most probable value of {count!r}, {_kind(bn, count)}, is not searched for; name other targets, and ask for its "
            f"distribution with query({count!r})"
        )
    finite, reals = [n for n in targets if n in compiled.index], [n for n in targets if n in compiled.real_index]
    with _part(bn, reals, evidence) as part:
        mode = hybrid.most_probable(part, [compiled.index[n] for n in finite], [compiled.real_index[n] for n in reals], evidence)
    _check_possible(mode.log_prob, evidence)
    found = {n: compiled.variables[n].states[c] for n, c in zip(finite, mode.codes.tolist(), strict=True)}
    values = {**found, **dict(zip(reals, mode.values.tolist(), strict=True))}
    return MostProbable({n: values[n] for n in targets}, mode.log_joint, mode.log_prob, evidence.given)


def _mixture(bn: NetworkParts, names: Sequence[str], found: Mixed, evidence: Observed, **more: Any) -> Mixture:
    """The answer about some numbers, or about one that is not normal: of its own distribution where it is not observed."""
    variable = bn.variables[names[0]]
    if names[0] not in bn.compiled.counts - set(evidence.given):
        parts: MixtureParts = NormalParts(found.means, found.covariances)
    elif isinstance(variable, Distributed):
        family, moments = variable.family, (found.means[:, 0], found.covariances[:, 0, 0])
        parts = DistributionParts(variable, family.parameters_of(family.kind.from_moments(family.distribution, *moments)))
    else:
        parts = PoissonParts(found.means[:, 0])
    return Mixture(tuple(names), found.weights, parts, log_prob_of_evidence=found.log_prob, given=evidence.given, **more)


def _kind(bn: NetworkParts, name: str) -> str:
    variable = bn.variables[name]
    return f"a number of {variable.family!r}" if isinstance(variable, Distributed) else "a count"


def _check_possible(log_prob: float, evidence: Observed) -> None:
    if log_prob == NEVER:
        raise impossible(evidence)


@contextmanager
def _part(bn: NetworkParts, reals: Sequence[str], evidence: Observed) -> Iterator[Hybrid]:
    """What a question goes through: all of the network, or its finite part, if it neither asks for numbers nor gives some."""
    if not reals and not evidence.reals:
        yield bn.compiled.finite_part
        return
    with one_blas_thread, refuse_by_name(bn):
        yield bn.compiled.hybrid


@contextmanager
def refuse_by_name(bn: NetworkParts) -> Iterator[None]:
    """Refusals in words: what inference knows by number has a name here."""
    try:
        yield
    except Trouble as trouble:
        raise _in_words(bn, trouble) from None
    except ManyConfigurations as many:
        names = listing(bn.compiled.finite[v] for v in many.variables)
        raise TooLarge(
            f"an exact answer goes through {many.n:,} configurations of {names}, and the limit is {many.limit:,}: observe some "
            f"of them, or draw the answer with {BY_WEIGHTING}"
        ) from None
    except HiddenCount as hidden:
        count, child = (bn.compiled.reals[m] for m in (hidden.count, hidden.child))
        if count not in bn.compiled.counts:
            raise no_formula(bn[count], dict.fromkeys(bn[count].real_parents, 0.0)) from None
        raise NoFormula(
            f"the answer depends on {child!r}, whose parent {count!r} is {_kind(bn, count)} that is not observed: the sum over "
            "all its values has no formula",
            [count],
        ) from None
    except MixtureMode as mixture:
        names = listing(bn.compiled.finite[v] for v in mixture.variables)
        raise ModelError(
            f"the real targets are a mixture over {names}, whose highest point has no formula: make {names} targets, too, or "
            "ask for the distribution with query"
        ) from None


def _in_words(bn: NetworkParts, trouble: Trouble) -> ModelError:
    compiled = bn.compiled
    names = {compiled.finite[v]: code for v, code in trouble.states.items()}
    where = ", ".join(f"{n}={compiled.variables[n].states[code]!r}" for n, code in names.items())
    at = f" at {where}" if where else ""
    seen = listing(compiled.reals[m] for m in trouble.observed)
    if trouble.reason == COLLINEAR:
        return ModelError(
            f"the evidence on {seen} is collinear up to rounding{at}: one of these values follows from the others; leave it out"
        )
    if trouble.reason == OVERFLOW:
        return ModelError(
            f"means or variances of real nodes grow beyond what a number holds{at}: coefficients are too large, or a "
            "distribution has no finite variance"
        )
    node = compiled.reals[trouble.reason]
    own = ", ".join(f"{p.name}={p.states[names[p.name]]!r}" for p in bn[node].finite_parents)
    return ModelError(f"{node!r} has no parameters at {own}: too few rows had it; fit with a prior")


def reduce_network(
    bn: SomeNetwork,
    targets: Iterable[str],
    numbers: Mapping[str, float] | None = None,
    seen: Iterable[str] = (),
    *,
    needed: Iterable[str] | None = None,
) -> SomeNetwork:
    """The network for one question: no regression in it is open. Nodes and variables stay what they are. `numbers` are the values
    of the observed numbers, `seen` the finite variables of which there is evidence. `needed` are the nodes whose distributions
    matter: targets, what is observed, and all above them, if nothing is said."""
    if not bn.compiled.open:
        return bn
    values = dict(numbers or {})
    needed = above(bn.dag, {*targets, *values, *seen}) if needed is None else set(needed)
    for name in bn.compiled.open:
        if name in needed and without_formula(bn, name, values):
            raise no_formula(bn[name], values)
    cpds: dict[str, Any] = {n: bn[n] for n in bn}
    for name in {*bn.compiled.open, *bn.compiled.reals} - needed:
        cpds[name] = stand_in(bn[name], known=name in values)
    for name in (n for n in bn.compiled.open if n in needed):  # all numbers of these are known
        own = {p: values[p] for p in bn[name].real_parents}
        if name in values:
            cpds[name] = density(bn[name], own | {name: values[name]})
        else:
            cpds[name] = as_closed_form(cpds[name].without(own))
    return bn.with_cpds(cpds, Dag({n: cpd.parents for n, cpd in cpds.items()}, nodes=list(cpds)))


def above(dag: Dag, names: Iterable[str]) -> set[str]:
    """Nodes and all their ancestors."""
    found = set(names)
    return found.union(*(dag.ancestors(n) for n in found))


def without_formula(bn: NetworkParts, name: str, values: Mapping[str, float]) -> bool:
    """Whether an open regression stays open, these numbers being observed."""
    cpd = bn[name]
    return any(p not in values for p in cpd.real_parents) or (name not in values and not cpd.family.closes)
