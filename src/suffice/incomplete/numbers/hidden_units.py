"""The units of hidden numbers: those of the first observed child, going down the graph, so that what is computed stays near 1."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from suffice.graphs.lagged import variable_and_lag
from suffice.graphs.template import Template
from suffice.incomplete.numbers.units import Units


def with_hidden(units: Units, alike: Mapping[str, str | None]) -> Units:
    """The units with those of hidden numbers, each as the column it is like, or as they are."""
    centre, scale, mean, variance, weight = map(dict, (units.centre, units.scale, units.mean, units.variance, units.weight))
    for name, model in alike.items():
        known = model is not None and model in units.centre
        centre[name] = units.centre[model] if known else 0.0  # type: ignore[index]
        scale[name] = units.scale[model] if known else 1.0  # type: ignore[index]
        mean[name], variance[name], weight[name] = 0.0, units.variance[model] if known else 1.0, 0.0  # type: ignore[index]
    return replace(units, centre=centre, scale=scale, mean=mean, variance=variance, weight=weight)


def observed_below(children: Mapping[str, Sequence[str]], name: str, observed: Collection[str]) -> str | None:
    """The first observed variable among the descendants of one, the nearest first.

    >>> observed_below({"a": ["b", "c"], "b": ["a", "y"]}, "a", {"y"})
    'y'
    """
    near, seen = [name], {name}
    while near:
        below = [c for n in near for c in children.get(n, ()) if c not in seen]
        found = next((c for c in below if c in observed), None)
        if found is not None:
            return found
        seen.update(below)
        near = list(dict.fromkeys(below))
    return None


def columns_below(template: Template, hidden: Collection[str], observed: Collection[str]) -> dict[str, str | None]:
    """For each hidden variable the column that it is measured like, or None.

    >>> columns_below(Template("trend[-1] -> trend; trend[-1] -> level; level -> y"), ["trend", "level"], ["y"])
    {'trend': 'y', 'level': 'y'}
    """
    children: dict[str, list[str]] = {}
    for child in template.nodes:
        for parent in template.parents(child):
            children.setdefault(variable_and_lag(parent)[0], []).append(child)
    return {name: observed_below(children, name, observed) for name in hidden}
