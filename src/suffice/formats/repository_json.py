"""The JSON of the network repositories: Gaussian and conditional Gaussian networks. It is only read.

    {"nodes": [...], "arcs": [[parent, child], ...], "cpds": {node: {...}}}

A CPD is `discrete` (`states`, `prob` flat: the own state fastest, then the first parent, the last parent slowest, each
parent's states in the order of `parent_states`), `gaussian` (`coefficients` with "(Intercept)", `sd`) or `clg` (`configs`:
for each combination of the finite parents `given`, `coefficients`, `sd`). A CPD without a type is Gaussian, its numbers in
lists of one and `variance` in place of `sd`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.basis.variables import Finite, Real
from suffice.errors import FormatError
from suffice.formats.grammar.finite_network import Definition, FiniteNetwork, Numbers, cells, check_network, declare
from suffice.formats.grammar.tokens import Array, hint, show
from suffice.graphs import Dag

if TYPE_CHECKING:
    from suffice.families.by_hand import Gaussian
    from suffice.models.networks import BayesNet


def read(content: dict[str, Any]) -> tuple[BayesNet, tuple[str, ...]]:
    """The network of a file, and what its reader should be told about it."""
    from suffice.models.networks import BayesNet

    nodes = [_of_type(node, str, "a node") for node in _field(content, "nodes", list, "the file")]
    cpds = _field(content, "cpds", dict, "the file")
    if len(set(nodes)) < len(nodes):
        raise FormatError("a node is listed twice")
    if odd := sorted(cpds.keys() ^ set(nodes)):
        raise FormatError(
            f"{show(odd[0])} must be among the nodes and have a CPD{hint(odd[0], sorted(cpds.keys() & set(nodes)))}"
        )
    parents = {name: _parents(name, cpds[name]) for name in nodes}
    dag = Dag(parents, nodes=nodes)
    arcs = _field(content, "arcs", list, "the file")
    if not all(isinstance(arc, list) and len(arc) == 2 and all(isinstance(end, str) for end in arc) for arc in arcs):
        raise FormatError("'arcs' must be pairs [parent, child]")
    if at_odds := sorted({(a, b) for a, b in arcs} ^ set(dag.edges)):
        raise FormatError(f"the arcs and the parents in the CPDs disagree about {show(at_odds[0][0])} -> {show(at_odds[0][1])}")
    finite = _finite_part(nodes, cpds, parents)
    tables: dict[str, Any] = {name: table.probs for name, table in finite.tables.items()}
    variables = {v.name: v for v in finite.variables}
    for name in nodes:
        if name not in tables:
            tables[name] = _gaussian(name, cpds[name], parents[name], variables)
    bn = BayesNet(dag, tables, variables=[variables.get(name, Real(name)) for name in nodes])
    return bn, finite.notes


def parse_object(text: str) -> dict[str, Any]:
    """The object that a JSON text holds; no key twice, no NaN."""

    def no_constant(word: str) -> Any:
        raise FormatError(f"{word} is not a number that JSON may hold")

    def no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise FormatError(f"the key {show(twice)} occurs twice in one object")
        return found

    try:
        content = json.loads(text, parse_constant=no_constant, object_pairs_hook=no_key_twice)
    except json.JSONDecodeError as error:
        raise FormatError(f"the JSON is broken: {error.msg}", line=error.lineno) from None
    except RecursionError:
        raise FormatError("the JSON is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError("the JSON holds a number that is too long") from None
    if not isinstance(content, dict):
        raise FormatError("the JSON must hold an object at its top")
    return content


def _of_type(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise FormatError(f"{what} must be {'a text' if kind is str else f'a {kind.__name__}'}, not {show(repr(value))}")
    return value


def _field(of: dict[str, Any], key: str, kind: type, whose: str) -> Any:
    if key not in of:
        raise FormatError(f"{whose} has no {key!r}")
    return _of_type(of[key], kind, f"{key!r} of {whose}")


def _number(value: Any, what: str) -> float:
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e300:
        raise FormatError(f"{what} must be a number, not {show(repr(value))}")
    return float(value)


def _parents(name: str, cpd: Any) -> list[str]:
    cpd = _of_type(cpd, dict, f"the CPD of {show(name)}")
    return [_of_type(p, str, f"a parent of {show(name)}") for p in _field(cpd, "parents", list, f"the CPD of {show(name)}")]


def _finite_part(nodes: list[str], cpds: dict[str, Any], parents: dict[str, list[str]]) -> FiniteNetwork:
    """The finite nodes, which can have only finite parents and so are a network of their own."""
    variables: dict[str, Finite] = {}
    finite = [name for name in nodes if cpds[name].get("type") == "discrete"]
    for name in finite:
        states = _field(cpds[name], "states", list, f"the CPD of {show(name)}")
        declare(variables, name, [_of_type(s, str, f"a state of {show(name)}") for s in states], lambda: None)
    for name in finite:
        if real := [p for p in parents[name] if p not in variables]:
            raise FormatError(f"the table of {show(name)} cannot have the real parent {show(real[0])}")
    numbers = {name: Numbers(_probabilities(name, cpds[name], parents[name], variables)) for name in finite}
    definitions = [Definition(name, tuple(parents[name]), numbers[name], lambda _: None) for name in finite]
    return check_network(variables, definitions) if finite else FiniteNetwork((), {})


def _probabilities(name: str, cpd: dict[str, Any], parents: list[str], variables: dict[str, Finite]) -> Array:
    """The numbers with the child fastest and then the last parent, states in their declared order."""
    whose = f"the CPD of {show(name)}"
    values = np.array([_number(p, f"a probability of {show(name)}") for p in _field(cpd, "prob", list, whose)])
    sizes = [variables[p].n_states for p in parents]
    if values.size != cells([*sizes, variables[name].n_states]):
        return values
    table = values.reshape(*reversed(sizes), -1).transpose(*reversed(range(len(sizes))), len(sizes))
    orders = _field(cpd, "parent_states", dict, whose)
    for axis, parent in enumerate(parents):
        states = _field(orders, parent, list, f"'parent_states' of {show(name)}")
        place = {str(state): k for k, state in enumerate(states)}
        if len(states) != sizes[axis] or place.keys() != set(variables[parent].states):
            raise FormatError(f"the states of {show(parent)} in the CPD of {show(name)} are not those it has")
        table = table.take([place[state] for state in variables[parent].states], axis=axis)
    return table.reshape(-1)


def _gaussian(name: str, cpd: dict[str, Any], parents: list[str], variables: dict[str, Finite]) -> Gaussian:
    from suffice.families.by_hand import Gaussian

    kind = cpd.get("type", "gaussian")
    if kind not in ("gaussian", "clg"):
        raise FormatError(f"the CPD of {show(name)} is of the unknown type {show(str(kind))}")
    finite = [variables[p] for p in parents if p in variables]
    reals = [p for p in parents if p not in variables]
    shape = tuple(v.n_states for v in finite)
    configs = _field(cpd, "configs", list, f"the CPD of {show(name)}") if kind == "clg" else [cpd]
    if len(configs) != cells(shape):
        raise FormatError(f"variable {show(name)} has {len(configs)} configurations; its finite parents need {cells(shape):.9g}")
    numbers = np.full((*shape, len(reals) + 2), np.nan)
    codes = {v.name: {state: k for k, state in enumerate(v.states)} for v in finite}
    for config in configs:
        place = _place(name, _of_type(config, dict, f"a configuration of {show(name)}"), codes)
        if not np.isnan(numbers[place][0]):
            raise FormatError(f"variable {show(name)} has a configuration twice")
        numbers[place] = _regression(name, config, reals)
    coefficients = {parent: numbers[..., k + 1] for k, parent in enumerate(reals)}
    return Gaussian(intercept=numbers[..., 0], coefficients=coefficients, variance=numbers[..., -1])


def _place(name: str, config: dict[str, Any], codes: dict[str, dict[str, int]]) -> tuple[int, ...]:
    """The codes of the finite parents' states that a configuration is for."""
    given = _field(config, "given", dict, f"a configuration of {show(name)}") if codes else {}
    if given.keys() != codes.keys():
        raise FormatError(f"a configuration of {show(name)} does not give its finite parents")
    for parent, known in codes.items():
        if not isinstance(given[parent], str) or given[parent] not in known:
            raise FormatError(f"variable {show(parent)} has no state {show(str(given[parent]))}")
    return tuple(known[given[parent]] for parent, known in codes.items())


def _regression(name: str, config: dict[str, Any], reals: list[str]) -> list[float]:
    coefficients = _field(config, "coefficients", dict, f"the CPD of {show(name)}")
    if sorted(coefficients) != sorted(["(Intercept)", *reals]):
        raise FormatError(f"variable {show(name)} needs an '(Intercept)' and a coefficient for each of its real parents")
    numbers = [_number(coefficients[key], f"a coefficient of {show(name)}") for key in ("(Intercept)", *reals)]
    if "variance" in config:
        return [*numbers, _number(config["variance"], f"the variance of {show(name)}")]
    return [*numbers, _number(config.get("sd"), f"the sd of {show(name)}") ** 2]
