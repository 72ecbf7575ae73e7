"""Chains: sequences whose steps repeat a template, p(x) = Π_t Π_i p(x_i,t | parents), written down, or made of statistics of
complete steps and a prior.

Each variable has one distribution that all steps share. Where lags do not exist yet, a variable has one of its own, named after
its step, `state[0]`; or the first slices follow from the others (`Stationary`), or begin anywhere (`Diffuse`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from suffice.basis.output.display import Rows, and_more
from suffice.basis.variables import Finite, Real, Variable
from suffice.engines.sequences.lagged import rename
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, ModelError, listing, nearest, quantity
from suffice.errors.remedies import FIRST_DIFFUSE, SEQUENCES
from suffice.families import family_of
from suffice.families.by_hand import ByHand
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.gathering import gather_steps
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Cpd, Estimate
from suffice.graphs.lagged import relative_name, unrolled_name, variable_and_lag
from suffice.graphs.template import Template, TemplateLike
from suffice.incomplete.chains.chain_states import Phase, phases_of
from suffice.incomplete.first_slices import Diffuse, First, Free, Given, Stationary, checked_first
from suffice.models.estimation import estimate_nodes
from suffice.models.parts.network_parts import NodeDistributions
from suffice.models.parts.written import check_nodes, declared_variables, written_cpd
from suffice.statistics import Statistics

ASKED_OF_ROWS = {
    "predict": "decode(sequences) has the most probable path, posterior_decode the most probable state of each cell",
    "predict_proba": "smooth(sequences) has the probabilities",
    "query": "smooth(sequences) answers for all steps, unroll(n).query for a network of n steps",
    "marginals": "smooth(sequences) answers for all steps, unroll(n).marginals for a network of n steps",
    "most_probable": "decode(sequences) has the most probable path",
}
"""Questions to networks of rows, and how a chain is asked."""


class ChainParts(NodeDistributions):
    """What a chain is: a template, its variables, the distributions of all steps and of the first slices, and where they come
    from. `Chain` asks questions of it."""

    template: Template
    first_slices: First
    """How sequences begin: `Free()`, `Stationary()`, `Diffuse()` or `Given(...)`."""
    hidden: tuple[str, ...]
    """The variables that were hidden when it was fitted: sequences need not have them."""
    _fixed: Mapping[str, bool | tuple[str, ...]] = MappingProxyType({})
    file_kind: ClassVar[str] = "chain"
    _elsewhere: ClassVar[Mapping[str, str]] = ASKED_OF_ROWS
    _word = "chain"

    def __init__(
        self,
        template: TemplateLike,
        cpds: Mapping[str, object],
        variables: Mapping[str, Variable] | Iterable[Variable] = (),
        first: First | None = None,
    ) -> None:
        graph, how = Template(template), checked_first(first)
        known = declared_variables(cpds, variables)
        if isinstance(how, Given):
            cpds = {**cpds, **nodes_given(how, graph)}
        wanted = parameter_names(graph, how, cpds)
        check_nodes(cpds, known, wanted, "template")
        for name in (n for n in graph.topological_order if n not in known):  # a Gaussian is Real without saying, and so on
            own = next((k for k in wanted if k != name and k.startswith(f"{name}[")), name)
            given = cpds[own if own in cpds else name]
            declared = given.declare(name) if isinstance(given, (Cpd, ByHand)) else None
            if declared is None:
                raise ModelError(f"the states of {name!r} are not known: variables=[Finite({name!r}, [...])]")
            known[name] = declared
        for name in (n for n, t in graph.first_nodes if isinstance(how, Diffuse) and unrolled_name(n, t) not in wanted):
            if not isinstance(known[name], Real):
                raise ModelError(f"{FIRST_DIFFUSE} is of real numbers, and {name!r} is none: give {{'{name}[0]': ...}}, too")
        every = {
            relative_name(n, k): rename(v, relative_name(n, k)) for n, v in known.items() for k in (0, *graph.lags.get(n, ()))
        }
        bound = {
            name: written_cpd(name, cpds[name], parents, {**every, name: rename(known[base], name)})
            for name, (base, parents) in wanted.items()
        }
        vars(self).update(vars(self.of(graph, {n: known[n] for n in graph.nodes}, bound, first_slices=how)))

    @classmethod
    def of(
        cls,
        template: Template,
        variables: Mapping[str, Variable],
        cpds: Mapping[str, Cpd],
        hidden: Iterable[str] = (),
        first_slices: First | None = None,
        fixed: Mapping[str, bool | tuple[str, ...]] | None = None,
        **provenance: Any,
    ) -> Self:
        """A chain from finished distributions; the way in for learners and readers of files."""
        begin = first_slices or Free()
        own = {n: cpds[n] for n in parameter_names(template, begin, cpds)}
        given = {n: cpd for n, cpd in own.items() if n not in template.nodes} if isinstance(begin, Given) else {}
        parts = {
            "template": template,
            "variables": MappingProxyType({n: variables[n] for n in template.nodes}),
            "first_slices": Given(given) if isinstance(begin, Given) else begin,
            "hidden": tuple(hidden),
            "_cpds": own,
            "_fixed": {**(fixed or {}), **dict.fromkeys(given, True)},
        }
        return cls._made_of(parts, **provenance)

    @property
    def order(self) -> int:
        """The largest lag."""
        return self.template.order

    @property
    def fixed(self) -> Mapping[str, bool | tuple[str, ...]]:
        """What was known when it was fitted, and stayed, as `em` takes it: nodes, `True`, or some of their entries by name."""
        return MappingProxyType(self._fixed)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: those of what was fixed, or given as the first slices, are none."""
        return sum(map(self._n_free, self._cpds))

    def _n_free(self, node: str) -> int:
        cpd, known = self._cpds[node], self._fixed.get(node, ())
        return 0 if known is True else cpd.n_parameters - sum(cpd.entries[name] for name in known or ())

    @cached_property
    def first(self) -> tuple[Mapping[str, Any], ...]:
        """The distributions of each of the first slices, one for each step until all lags exist, by variable; a number that
        begins anywhere has none."""
        if isinstance(self.first_slices, Stationary):  # that of a chain that has always been running
            own = [n for n in self.template.nodes if self.template.own_at(n, 0)]
            if len(own) != 1:
                raise ModelError(
                    f"the first slice of {', '.join(own)} together is stationary(), an array over their joint states"
                )
            variable, settled = self.variables[own[0]], self.stationary()
            begin: Cpd
            if isinstance(variable, Finite):
                begin = Table(variable, (), settled)
            elif len(settled.names) > 1:
                raise ModelError(f"the first slice of {settled.names} together is stationary(): their mean and covariance")
            else:
                begin = ConditionalGaussian(variable, (), settled.mean[0], np.zeros(0), settled.covariance[0, 0])
            return (MappingProxyType({**{n: self._cpds[n] for n in self.template.nodes}, own[0]: begin}),)
        keys = [{n: self.template.parameter_name(n, t) for n in self.template.nodes} for t in range(self.order)]
        return tuple(MappingProxyType({n: self._cpds[key] for n, key in own.items() if key in self._cpds}) for own in keys)

    def __eq__(self, other: object) -> bool:
        """Same template, same variables, same parameters, same way to begin."""
        if not isinstance(other, ChainParts):
            return NotImplemented
        mine, theirs = ((c.template, c.variables, type(c.first_slices)) for c in (self, other))
        return mine == theirs and all(self[n].same(other[n]) for n in self)

    __hash__ = None  # type: ignore[assignment]

    def stationary(self) -> Any:
        """What the transition settles to, as `Chain` finds it."""
        raise NotImplementedError

    def _headline(self) -> str:
        n = quantity(self.n_parameters, "parameter")
        begin = "" if isinstance(self.first_slices, Free) else f", first={self.first_slices}"
        return f"Chain {self.template}{begin}: {n}; {self.fit_info}"

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        facts = []
        for name, cpd in list(self._cpds.items())[:limit]:
            v = cpd.child
            kind = quantity(v.n_states, "state") if isinstance(v, Finite) else v.word
            base = name if name in self.variables else name.rpartition("[")[0]
            mark = " (hidden)" if base in self.hidden else ""
            free = self._n_free(name)
            held = f" ({cpd.n_parameters - free:,} fixed)" if free < cpd.n_parameters else ""
            facts.append((name, kind + mark, ", ".join(cpd.parents), f"{free:,}{held}"))
        return [(["node", "type", "parents", "parameters"], facts)], and_more(len(self) - limit, "node")


def parameter_names(template: Template, first: First, given: Container[str] = ()) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The nodes that have parameters: variable and parents of each, those of all steps first. With `Diffuse()` those of the first
    slices are among them that are `given`; the others begin anywhere."""
    names = {n: (n, template.parents(n)) for n in template.nodes}
    if isinstance(first, Stationary):
        return names
    own = {unrolled_name(n, t): (n, template.parents_at(n, t)) for n, t in template.first_nodes}
    return names | {key: node for key, node in own.items() if not isinstance(first, Diffuse) or key in given}


def nodes_given(first: Given, template: Template) -> dict[str, Any]:
    """What is given of each node of the first slices, by its own name; each must be there. That of step 0 may go by the name of
    its variable."""
    source, result = first.cpds, {}
    if not isinstance(source, (ChainParts, Mapping)):
        raise FitError(f"first=Given(...) takes a chain, or distributions by node, {{'state': [0.5, 0.5]}}, not {source!r}")
    for name, t in template.first_nodes:
        key = template.parameter_name(name, t)
        found = source[key] if key in source else source[name] if t == 0 and name in source else None
        if found is None:
            raise FitError(f"first=Given(...) has no distribution of {key!r}: give {{{key!r}: ...}}")
        result[key] = found
    return result


def chain_phases(chain: ChainParts) -> tuple[Phase, ...]:
    families = {n: chain[n].family for n in chain.template.nodes if chain[n].is_regression}
    return phases_of(chain.template, chain.variables, families)


SomeChain = TypeVar("SomeChain", bound=ChainParts)


def estimate_chain(
    kind: type[SomeChain],
    template: Template,
    statistics: Statistics,
    prior: Prior | None,
    how: Estimate,
    *,
    bound: bool = False,
    ready: Mapping[str, Cpd] | None = None,
    first: First | None = None,
) -> SomeChain:
    """The chain that statistics of complete steps, a prior and a choice of point values make. `ready` has distributions that
    statistics cannot give, those of regressions; `first` may have first slices that are given."""
    given: Mapping[str, Cpd] = first.cpds if isinstance(first, Given) else {}
    known = statistics.variables
    if lacking := [n for n in template.nodes if n not in known and n not in (ready or {})]:
        raise DataError(
            f"the statistics do not speak of {listing(lacking)}, which the template names{nearest(lacking[0], known)}"
        )
    if not statistics.weight > 0:
        raise DataError("there are no steps to learn from")
    slice_ = {n: known[n] if n in known else (ready or {})[n].child for n in template.nodes}
    nodes: dict[str, tuple[Variable, list[Variable]]] = {
        key: (rename(slice_[name], key), [rename(slice_[base], p) for p in parents for base, _ in [variable_and_lag(p)]])
        for key, (name, parents) in parameter_names(template, Free()).items()
    }
    variables = {v.name: v for child, own in nodes.values() for v in (child, *own)}
    for key, cpd in given.items():
        child, own = nodes[key]
        for now, before in zip((child, *own), (cpd.child, *cpd.parent_variables), strict=True):
            if now != before:
                raise DataError(f"the first slices are given, and {key!r} is of {before!r}; these sequences have {now!r}")
    free = {n: node for n, node in nodes.items() if n not in given}
    if prior is not None and not bound:
        seen = (
            (c, ps, statistics.answer(family_of(c, ps).needs(c, ps))) for n, (c, ps) in free.items() if n not in (ready or {})
        )
        prior = prior.choose(variables, seen, statistics).bind(variables, statistics)
    cpds, by = estimate_nodes(free, statistics, prior, how, ready or {}, {})
    info = f"fitted from {statistics.weight:,.10g} steps, {by}"
    fitted: dict[str, Any] = {"statistics": statistics, "prior": prior, "estimate": how, "fit_info": info}
    return kind.of(template, slice_, {**cpds, **given}, **fitted, first_slices=first)


def update_chain(chain: SomeChain, more: Any, decay: float = 1.0) -> SomeChain:
    """The chain that old and new sequences together give, the old ones with `decay` of their weight."""
    if chain.incomplete:
        raise ModelError(
            "this chain was fitted from incomplete sequences, whose statistics are expected, not seen: call "
            "em(template, all_sequences, start=chain), with the old sequences and the new"
        )
    if chain.statistics is None:
        raise ModelError(f"this chain keeps no statistics that steps could be added to ({chain.fit_info})")
    if regressions := [n for n in chain if chain[n].is_regression]:
        raise ModelError(f"{regressions[0]!r} is a regression, which needs all steps at once: call fit with all sequences")
    if not isinstance(more, (Sequences, Statistics)):
        raise DataError(f"a chain is updated by {SEQUENCES}, or by statistics")
    free = {n: v for n, v in chain.variables.items() if isinstance(v, Finite) and v.inferred and v.cuts is None}
    if isinstance(more, Sequences):
        declared: Any = {**chain.variables, **dict.fromkeys(free, Finite)}
        more = gather_steps(more.with_variables({n: v for n, v in declared.items() if n in more.columns}), chain.template)
    all_of_them, begin = chain.statistics.decay(decay) + more, chain.first_slices
    return estimate_chain(type(chain), chain.template, all_of_them, chain.prior, chain.estimate, bound=True, first=begin)
