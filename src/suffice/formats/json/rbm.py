"""Restricted Boltzmann machines in Suffice's own JSON, which keeps all of them.

    {"suffice": "rbm", "version": 1, "fit_info", "variables": [as in a network],
     "weights": [visible units × hidden units], "visible_biases", "hidden_biases", "centre", "scale": [of the real columns],
     "base": null | [visible biases of independent columns]}

Visible units are in the order of `suffice.models.undirected.visible`: bits, groups of states, numbers.
"""

from __future__ import annotations

from typing import Any

from suffice.models.rbm import RBM
from suffice.statistics.counts import array_of, flat
from suffice.variables import by_name, variable_from_dict, variable_to_dict

ARRAYS = ("weights", "visible_biases", "hidden_biases", "centre", "scale")


def content(machine: RBM) -> dict[str, Any]:
    """What is written of a machine."""
    variables = [variable_to_dict(v) for v in machine.variables.values()]
    arrays = {name: flat(getattr(machine, name)) for name in ARRAYS}
    base = None if machine.base is None else flat(machine.base)
    return {"fit_info": machine.fit_info, "variables": variables, **arrays, "base": base}


def _machine(d: dict[str, Any]) -> RBM:
    weights, visible, hidden, centre, scale = (array_of(d[name]) for name in ARRAYS)
    variables = by_name([variable_from_dict(v) for v in d["variables"]])
    shaped = weights.reshape(len(visible), len(hidden))
    base = None if d["base"] is None else array_of(d["base"])
    return RBM(variables, shaped, visible, hidden, centre=centre, scale=scale, base=base, fit_info=str(d["fit_info"]))


READERS = {"rbm": ("machine", _machine)}
