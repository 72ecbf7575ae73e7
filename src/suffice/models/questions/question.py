"""A question to a network: targets and `given`, as a user writes them, checked and read into numbers, and the families that its
answer depends on: `requisite` nodes are those whose families matter."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real as Number
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.variables import Count, Distributed, Finite, Variable, state_text
from suffice.errors import ImpossibleEvidence, ModelError, listing, nearest
from suffice.families.protocol.family import as_numbers
from suffice.models.parts.closed_forms import Compiled
from suffice.models.parts.network_parts import NetworkParts
from suffice.numerics.inference.finite.network import NONE, Array, Ints
from suffice.statistics.counts import freeze

Given = Mapping[str, object] | None
"""Evidence: a state, likelihoods of the states, or a number, by the name of a variable."""


class Known(dict[str, Any]):
    """What is given, by name, and what was `done` before: set from outside. Answers have both in their words."""

    def __init__(self, given: Mapping[str, Any], done: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.done = dict(done)

    def __reduce__(self) -> tuple[Any, ...]:
        return Known, (dict(self), self.done)


class Observed(NamedTuple):
    """Evidence by the numbers of `bn.compiled`: the code of each finite variable, −1 where it is not observed, the likelihoods of
    the states of some (`soft`), the values of some real ones; and what the user wrote (`given`), for the words of answers."""

    codes: Ints
    soft: dict[int, Array]
    reals: dict[int, float]
    given: dict[str, Any]

    def __repr__(self) -> str:
        return in_words(self.given)


def evidence_codes(bn: NetworkParts, given: Given) -> Observed:
    """Evidence as numbers; what cannot be evidence is refused with the name of the variable."""
    compiled = bn.compiled
    codes = np.full(len(compiled.finite), NONE, np.int64)
    soft: dict[int, Array] = {}
    reals: dict[int, float] = {}
    known = given if isinstance(given, dict) else {} if given is None else as_mapping(given, "what is given")
    for name, value in known.items():
        number = compiled.index.get(name)
        if number is not None and isinstance(value, str):
            codes[number] = compiled.variables[name].code(value)
        elif name not in bn:
            raise unknown_node(bn, name)
        elif is_missing(value):
            raise ModelError(f"{name!r} was given as {value}; leave out what is not observed")
        elif number is None:
            reals[compiled.real_index[name]] = number_of(bn.variables[name], value)
        elif is_by_state(value):
            soft[number] = likelihoods(compiled.variables[name], value)
        else:
            codes[number] = code_of(compiled.variables[name], value)
    return Observed(codes, soft, reals, Known(known, bn.interventions))


def code_of(variable: Finite, value: Any) -> int:
    """The code of a state by its name, or of the bin that a number falls into."""
    if isinstance(value, str) or variable.cuts is None or not _is_number(value):
        return variable.code(value)
    return bisect_right(variable.cuts, finite_number(value, variable.name))


def number_of(variable: Variable, value: Any) -> float:
    """The value of a variable without states: a number, which of a count is 0, 1, 2, …"""
    x = finite_number(value, variable.name)
    if isinstance(variable, Count) and not (x >= 0 and x.is_integer()):
        raise ModelError(f"{variable.name!r} is a count, 0, 1, 2, ..., and cannot be {value!r}")
    if isinstance(variable, Distributed) and variable.family.impossible(np.array([x]))[0]:
        raise ModelError(f"{variable.name!r} is {variable.family!r}, of {variable.family.support}, and cannot be {value!r}")
    return x


def finite_number(value: Any, name: str) -> float:
    """The value of a real variable, a number and nothing that only looks like one."""
    try:
        x = float(value) if _is_number(value) else math.nan
    except OverflowError:
        x = math.inf
    if not math.isfinite(x):
        raise ModelError(f"{name!r} is a number and needs a finite one, not {value!r}")
    return x


def likelihoods(variable: Finite, value: Any) -> Array:
    """Likelihood evidence, p(what was seen | state) up to a factor: one number per state, in their order."""
    array = numbers_by_state(variable, value, "likelihoods")
    if not (np.isfinite(array).all() and (array >= 0.0).all()):
        raise ModelError(f"the likelihoods of {variable.name!r} must be finite numbers from 0 up, not {array.tolist()}")
    if not array.any():
        raise ModelError(f"the likelihoods of {variable.name!r} are all zero: no state could have been seen so")
    return array


def is_by_state(value: Any) -> bool:
    """Whether this is a number for each state, and not one state."""
    if isinstance(value, (str, np.generic)):
        return False
    return isinstance(value, (list, tuple, Mapping, np.ndarray)) or hasattr(value, "__array__")


def is_missing(value: Any) -> bool:
    """Whether this stands for a cell without a value: None, NaN, or one of the marks that pandas has."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (Number, np.generic)) and bool(value != value)


def numbers_by_state(variable: Finite, value: Any, what: str) -> Array:
    """One number per state, from a sequence in their order or a mapping that lists every state."""
    if not isinstance(value, Mapping) and _is_series(value):  # by its labels, unless these are only positions
        by_label = value.to_dict()
        if len(by_label) < len(value):
            raise ModelError(f"the numbers of {variable.name!r} have a label twice: one number for each state")
        only_positions = list(by_label) == list(range(len(value))) and {str(i) for i in by_label} != set(variable.states)
        value = value if only_positions else by_label
    numbers = _in_order(variable, value, what) if isinstance(value, Mapping) else value
    array = as_numbers(numbers, f"the {what} of {variable.name!r} must be numbers, not {value!r}")
    if array.shape != (variable.n_states,):
        raise ModelError(
            f"the {what} of {variable.name!r} must be one number for each of its {variable.n_states} states "
            f"{listing(variable.states)}; got the shape {array.shape}"
        )
    return freeze(np.array(array))


def _in_order(variable: Finite, value: Mapping[Any, Any], what: str) -> list[Any]:
    by_code: dict[int, Any] = {}
    for state, number in value.items():
        code = variable.code(state)
        if code in by_code:
            raise ModelError(f"the {what} of {variable.name!r} have its state {variable.states[code]!r} twice")
        by_code[code] = number
    if lacking := [s for i, s in enumerate(variable.states) if i not in by_code]:
        raise ModelError(f"the {what} of {variable.name!r} lack its state {lacking[0]!r}; list every state")
    return [by_code[i] for i in range(variable.n_states)]


def unknown_name(name: object, known: Iterable[str]) -> ModelError:
    return ModelError(f"the network has no node {name!r}{nearest(name, known) if isinstance(name, str) else ''}")


def unknown_node(bn: NetworkParts, name: object) -> ModelError:
    """The refusal of a name that is no node; one that `do` took out is known."""
    if isinstance(name, str) and name in bn.intervened:
        return ModelError(f"{name!r} was set to a number by do(...) and is no node any more: its children have its value in them")
    return unknown_name(name, bn)


def impossible(evidence: Observed) -> ImpossibleEvidence:
    """The refusal of evidence that the network gives probability zero."""
    return ImpossibleEvidence(f"this evidence has probability zero, so nothing can be asked given it: {in_words(evidence.given)}")


def one_of_interval_and_method() -> ModelError:
    """The refusal of draws of the parameters and draws of the variables at once."""
    return ModelError("an interval comes from exact answers at draws of the parameters: give interval or method, not both")


def in_words(given: Mapping[str, Any]) -> str:
    """Evidence for a sentence.

    >>> in_words({"smoke": "yes", "age": 40.5, "xray": [0.1, 0.9]})
    'smoke=yes, age=40.5, xray~(0.1, 0.9)'
    """
    done = getattr(given, "done", {})
    words = [f"do({in_words(done)})"] if done else []
    for name, value in given.items():
        likely = value.to_dict() if _is_series(value) else value
        if isinstance(likely, Mapping):
            words.append(f"{name}~({listing((f'{s}: {p:g}' for s, p in likely.items()), style='str')})")
        elif is_by_state(likely):
            words.append(f"{name}~({listing((f'{p:g}' for p in np.asarray(likely)), style='str')})")
        else:
            words.append(f"{name}={state_text(likely)}")
    return listing(words, style="str")


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) and not isinstance(value, (bool, np.bool_))


def as_mapping(given: Any, what: str) -> Mapping[str, Any]:
    """What a user wrote as a mapping from names: a mapping, or a row of a frame (a pandas Series)."""
    if isinstance(given, Mapping):
        return given
    if not _is_series(given):
        name, _, state = given.partition("=") if isinstance(given, str) and len(given) < 80 else ("", "", "")
        hint = f"{{{name.strip() or 'x'!r}: {state.strip() or 'yes'!r}}}"
        raise ModelError(f"{what} must be a mapping from names of variables, as in {hint}; not of type {type(given).__name__}")
    by_name: Mapping[str, Any] = given.to_dict()
    if len(by_name) < len(given):
        raise ModelError(f"{what} names a variable twice")
    return by_name


def _is_series(value: Any) -> bool:
    """Whether this is a mapping in all but name; a frame, which has two axes, is not."""
    return hasattr(value, "to_dict") and np.ndim(value) == 1


def requisite(links: Compiled, targets: Iterable[str], observed: Collection[str], soft: Collection[str] = ()) -> tuple[str, ...]:
    """The nodes whose p(x | parents) can change p(targets | evidence), parents before children.

    `observed` have a value, `soft` only likelihoods. All other families may be left out: those of barren nodes, and those that
    the evidence cuts off. The parents of a node in the answer are in it, too, or observed. Shachter 1998, UAI 14, p. 480.

    >>> import suffice as sf
    >>> asia = sf.load("asia").compiled
    >>> requisite(asia, ["lung"], []), requisite(asia, ["lung"], ["smoke"]), requisite(asia, ["smoke"], ["bronc"])
    (('smoke', 'lung'), ('lung',), ('smoke', 'bronc'))
    >>> requisite(asia, ["smoke"], []), requisite(asia, ["smoke"], [], soft=["bronc"])
    (('smoke',), ('smoke', 'bronc'))
    """
    above: set[str] = set()  # visited on the way up: the family counts
    below: set[str] = set()  # visited on the way down
    stack = [(x, True) for x in targets]
    while stack:
        x, from_child = stack.pop()
        seen = x in observed
        if x not in above and (seen is not from_child or x in soft):
            above.add(x)
            stack += [(parent, True) for parent in links.parents[x]]
        if not seen and x not in below:
            below.add(x)
            stack += [(child, False) for child in links.children[x]]
    return tuple(x for x in links.order if x in above)


@dataclass(frozen=True, eq=False)
class Question:
    """A question by names: `nodes` are those whose families matter; `observed` and `soft` is known of them or their parents."""

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
    def of(cls, bn: NetworkParts, targets: Sequence[str], evidence: Observed, nodes: Sequence[str] | None = None) -> Question:
        """Without `nodes`, those that are requisite."""
        compiled = bn.compiled
        observed: dict[str, Any] = {compiled.finite[i]: int(evidence.codes[i]) for i in np.flatnonzero(evidence.codes >= 0)}
        observed |= {compiled.reals[i]: value for i, value in evidence.reals.items()}
        soft = {compiled.finite[i]: likelihood for i, likelihood in evidence.soft.items()}
        nodes = requisite(compiled, targets, observed, soft) if nodes is None else tuple(nodes)
        near = {*nodes, *(p for n in nodes for p in compiled.parents[n])}
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
    if known := [n for n in names if n in evidence.given and is_observed(bn, n, evidence)]:
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


def is_observed(bn: NetworkParts, name: str, evidence: Observed) -> bool:
    """Whether its value is given. Likelihood evidence does not make it known: it is weighed in."""
    return name in evidence.given and bn.compiled.index.get(name) not in evidence.soft
