"""A question to a network by names: which families its answer depends on, and what may be special about it.

`requisite` nodes are those whose families matter. Regressions become tables, Gaussians or densities before a question is
answered; an answer may not depend on those that have no formula, or be such a regression itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.errors import ModelError, listing, note
from suffice.errors.remedies import BY_DRAWS, Remedy
from suffice.families.design import configurations
from suffice.graphs import Dag
from suffice.inference.finite.logs import NEVER
from suffice.inference.finite.network import Array
from suffice.models.parts.closed_forms import NoFormula, no_formula, words
from suffice.models.parts.network_parts import NetworkParts, SomeNetwork
from suffice.models.questions import hybrid
from suffice.models.questions.answers.answers import Distribution, Marginals
from suffice.models.questions.answers.densities import ResponseParts
from suffice.models.questions.answers.mixture import Mixture
from suffice.models.questions.evidence import Given, Observed, evidence_codes, impossible, unknown_node
from suffice.models.questions.regressions import answerable, reduce_network
from suffice.variables import Finite, Variable


def requisite(dag: Dag, targets: Iterable[str], observed: Collection[str], soft: Collection[str] = ()) -> tuple[str, ...]:
    """The nodes whose p(x | parents) can change p(targets | evidence), parents before children.

    `observed` have a value, `soft` only likelihoods. All other families may be left out: those of barren nodes, and those that
    the evidence cuts off. The parents of a node in the answer are in it, too, or observed. Shachter 1998, UAI 14, p. 480.

    >>> dag = Dag("a -> b -> c -> d; e -> c")
    >>> requisite(dag, ["c"], []), requisite(dag, ["c"], ["b"]), requisite(dag, ["b"], ["c"])
    (('a', 'b', 'e', 'c'), ('e', 'c'), ('a', 'b', 'e', 'c'))
    >>> requisite(dag, ["a"], []), requisite(dag, ["a"], [], soft=["b"])
    (('a',), ('a', 'b'))
    """
    above: set[str] = set()  # visited on the way up: the family counts
    below: set[str] = set()  # visited on the way down
    stack = [(x, True) for x in targets]
    while stack:
        x, from_child = stack.pop()
        seen = x in observed
        if x not in above and (seen is not from_child or x in soft):
            above.add(x)
            stack += [(parent, True) for parent in dag.parents(x)]
        if not seen and x not in below:
            below.add(x)
            stack += [(child, False) for child in dag.children(x)]
    return tuple(x for x in dag.topological_order if x in above)


@dataclass(frozen=True, eq=False)
class Question:
    """A question by names: `nodes` are those whose families matter; `observed` and `soft` is known of them or their parents.

    >>> from suffice import BayesNet
    >>> from suffice.models.questions.evidence import evidence_codes
    >>> a, b, c = (Finite(name, ["no", "yes"]) for name in "abc")
    >>> bn = BayesNet("a -> b -> c", {"a": [0.5, 0.5], "b": [[1, 0], [0, 1]], "c": [[1, 0], [0, 1]]}, [a, b, c])
    >>> asked = Question.of(bn, ["c"], evidence_codes(bn, {"b": "yes"}))
    >>> asked.nodes, asked.observed
    (('c',), {'b': 1})
    """

    bn: NetworkParts
    targets: tuple[Variable, ...]
    evidence: Observed
    nodes: tuple[str, ...]
    observed: Mapping[str, Any]
    soft: Mapping[str, Array]
    finite: tuple[Finite, ...]
    """The targets that have states."""
    reals: tuple[str, ...]
    """The targets that are numbers."""
    free: tuple[str, ...]
    """What matters and is not observed."""

    @classmethod
    def of(cls, bn: NetworkParts, targets: Sequence[str], evidence: Observed) -> Question:
        compiled = bn.compiled
        observed: dict[str, Any] = {compiled.finite[i]: int(evidence.codes[i]) for i in np.flatnonzero(evidence.codes >= 0)}
        observed |= {compiled.reals[i]: value for i, value in evidence.reals.items()}
        soft = {compiled.finite[i]: likelihood for i, likelihood in evidence.soft.items()}
        nodes = requisite(bn.dag, targets, observed, soft)
        near = {*nodes, *(p for n in nodes for p in bn.dag.parents(n))}
        values, likelihoods = ({n: v for n, v in known.items() if n in near} for known in (observed, soft))
        asked = tuple(bn.variables[t] for t in targets)
        finite = tuple(t for t in asked if isinstance(t, Finite))
        reals = tuple(t.name for t in asked if not isinstance(t, Finite))
        free = tuple(n for n in nodes if n not in values)
        return cls(bn, asked, evidence, nodes, values, likelihoods, finite, reals, free)


def checked_question(bn: NetworkParts, targets: str | Sequence[str], given: Given) -> tuple[tuple[str, ...], Observed]:
    """Targets, at least one, each once, all known, and evidence of others, as a user wrote them."""
    if isinstance(targets, (set, frozenset)) or not isinstance(targets, Iterable):
        raise ModelError(f"targets are a name or a list of names, whose order is that of the axes; not {targets!r}")
    names = checked_names(bn, targets) or ()
    if not names:
        raise ModelError("there is no target: name at least one variable")
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ModelError(f"the target {twice!r} is named twice")
    evidence = evidence_codes(bn, given)
    if known := [n for n in names if is_observed(bn, n, evidence)]:
        raise ModelError(f"{listing(known)} is asked for and given at once; ask for what is not observed")
    return names, evidence


def checked_names(bn: NetworkParts, targets: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Nodes by name, all known; None where none are named."""
    if targets is None:
        return None
    names = (targets,) if isinstance(targets, str) else tuple(targets)
    for name in names:
        if not isinstance(name, str) or name not in bn:
            raise unknown_node(bn, name)
    return names


def exact_answer(bn: NetworkParts, names: Sequence[str], evidence: Observed) -> Distribution | Mixture:
    """p(names | evidence), exactly; `checked_question` has checked both."""
    if len(names) == 1 and bn[names[0]].is_regression and not bn[names[0]].family.closes:
        return regression_mixture(bn, names[0], evidence)
    try:
        small, known = without_regressions(bn, names, evidence)
    except NoFormula:
        return answer_from_relevant(bn, names, evidence)
    return hybrid.closed_answer(small, names, known)


def answer_from_relevant(bn: NetworkParts, names: Sequence[str], evidence: Observed) -> Distribution | Mixture:
    """The answer from the distributions that matter to it, where the evidence needs an integral without a formula on which the
    answer may not depend; the probability of all evidence is not known then."""
    question = Question.of(bn, names, evidence)
    kept = {n: value for n, value in evidence.given.items() if n in question.observed or n in question.soft}
    small = reduce_network(bn, names, _observed_in(bn, evidence_codes(bn, kept))[0], needed=question.nodes)
    answer = replace(hybrid.closed_answer(small, names, evidence_codes(small, kept)), given=evidence.given)
    return answer if isinstance(answer, Distribution) else replace(answer, log_prob_of_evidence=float("nan"))


def regression_mixture(bn: NetworkParts, name: str, evidence: Observed) -> Mixture:
    """A regression of a number that is neither Gaussian nor Poisson: mixed over its finite parents that are not given, if its
    numbers are and nothing below it is seen."""
    cpd: Any = bn[name]
    numbers = _observed_in(bn, evidence)[0]
    below = [n for n in evidence.given if name in bn.dag.ancestors(n)]
    if below:
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
    parts, log_prob = ResponseParts(cpd, some, len(weights)), _known_log_prob(bn, evidence)
    return Mixture((name,), weights, parts, log_prob_of_evidence=log_prob, given=evidence.given)


def _known_log_prob(bn: NetworkParts, evidence: Observed) -> float:
    """ln p(evidence), NaN where it has no formula; evidence that cannot be is refused."""
    try:
        found = log_prob_of(bn, evidence)
    except NoFormula:
        return float("nan")
    if found == NEVER:
        raise impossible(evidence)
    return found


def log_prob_of(bn: NetworkParts, evidence: Observed) -> float:
    """ln p(evidence), a density where it gives reals."""
    return hybrid.log_prob_of(*without_regressions(bn, (), evidence)) if evidence.given else 0.0


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
        found = hybrid.marginals(bn, evidence)
        return found.of_nodes(bn.variables) if bn.compiled.reals else found
    names = answerable(bn, *_observed_in(bn, evidence))
    small, known = without_regressions(bn, names, evidence)
    numbers = {n: answer for n in bn if n not in names and (answer := _regressed_or_none(bn, n, evidence)) is not None}
    left_out = [n for n in bn if n not in names and n not in numbers]
    if left_out:
        name = left_out[0]
        python = f"it with query({name!r}, ..., method=LikelihoodWeighting())"
        note(
            f"{listing(left_out)} left out: regressions on numbers that are not observed, and nodes below them, have no exact "
            f"distribution; draw {Remedy(python, f'that of {name!r} with --method lw:10000')}"
        )
    return hybrid.marginals(small, known).of_nodes((n for n in bn if n in names or n in numbers), numbers)


def _regressed_or_none(bn: NetworkParts, name: str, evidence: Observed) -> Mixture | None:
    try:
        return regression_mixture(bn, name, evidence) if bn[name].is_regression and not bn[name].family.closes else None
    except NoFormula:
        return None


def share_of_draws(refused: NoFormula, evidence: Observed) -> str:
    """How the probability of states can be drawn; a density cannot be."""
    observe = f"observe {listing(refused.lacking)}, too"
    if evidence.reals or evidence.soft:
        return f"{observe}: the density of numbers cannot be drawn"
    names, states = list(evidence.given), tuple(evidence.given.values())
    asked = (repr(names[0]), repr(states[0])) if len(names) == 1 else (repr(names), repr(states))
    drawn = Remedy(f"query({asked[0]}, method=LikelihoodWeighting())[{asked[1]}]", "suffice query --method lw:10000")
    return f"{observe}, or draw p(given) as {drawn}"


def is_observed(bn: NetworkParts, name: str, evidence: Observed) -> bool:
    """Whether its value is given. Likelihood evidence does not make it known: it is weighed in."""
    return name in evidence.given and bn.compiled.index.get(name) not in evidence.soft
