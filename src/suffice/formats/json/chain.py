"""Chains in Suffice's own JSON, which keeps all of them.

    {"suffice": "chain", "version": 1, "fit_info", "estimate",
     "variables": [those of a slice, as in a network],
     "parents": {variable: [parents, the lagged ones as "x[-1]", in the order of the axes]},
     "first_parents": null | [{variable: [parents]} for each step until all lags exist] (null where parents that do not exist
                      are left out), "first": "free" | "stationary" | "diffuse" | "given",
     "cpds": {variable, or variable at a first step as in "x[0]": as in a network}, "prior", "statistics": as in a network}

"incomplete" and "hidden" are there where some cells were not; "fixed", {node: true or [its entries]}, where something was.
Which columns told sequences apart is not kept.
"""

from __future__ import annotations

from typing import Any

from suffice.engines.sequences.lagged import rename
from suffice.errors import FormatError
from suffice.families.protocol.family import Cpd
from suffice.formats.json.model import (
    ESTIMATES,
    cpd_from_dict,
    prior_from_dict,
    prior_to_dict,
    statistics_from_dict,
    statistics_to_dict,
)
from suffice.graphs.lagged import relative_name
from suffice.graphs.template import Template
from suffice.incomplete.first_slices import Diffuse, Free, Given, Stationary
from suffice.models.chain import Chain
from suffice.models.chains.chain_parts import parameter_names
from suffice.variables import by_name, variable_from_dict, variable_to_dict

FIRST: dict[str, Any] = {"free": Free, "stationary": Stationary, "diffuse": Diffuse, "given": Given}


def content(chain: Chain) -> dict[str, Any]:
    """What is written of a chain."""
    template, first = chain.template, chain.template._first
    return {
        "fit_info": chain.fit_info,
        "estimate": type(chain.estimate).__name__.lower(),
        "variables": [variable_to_dict(v) for v in chain.variables.values()],
        "parents": {n: list(template.parents(n)) for n in template.nodes},
        "first_parents": None if first is None else [{n: list(ps) for n, ps in parents.items()} for parents in first],
        "first": next(word for word, kind in FIRST.items() if isinstance(chain.first_slices, kind)),
        "cpds": {n: chain[n].to_dict() for n in chain},
        "prior": None if chain.prior is None else prior_to_dict(chain.prior),
        "statistics": None if chain.statistics is None else statistics_to_dict(chain.statistics),
        **({"incomplete": True, "hidden": list(chain.hidden)} if chain.incomplete else {}),
        **({"fixed": {n: known is True or list(known or ()) for n, known in chain.fixed.items()}} if chain.fixed else {}),
    }


def _chain(d: dict[str, Any]) -> Chain:
    template = Template(d["parents"], d["first_parents"])
    variables = by_name([variable_from_dict(v) for v in d["variables"]])
    if set(variables) != set(template.nodes):
        raise FormatError("the variables of this chain are not those of its parents")
    if d["first"] not in FIRST:
        raise FormatError(f"the first slices are {', '.join(FIRST)}, not {d['first']!r}")
    kind = FIRST[d["first"]]
    wanted = parameter_names(template, Free() if kind is Given else kind(), d["cpds"])
    at_lags = [(n, relative_name(n, k)) for n in variables for k in (0, *template.lags.get(n, ()))]
    known = {alias: rename(variables[n], alias) for n, alias in at_lags}
    known |= {n: rename(variables[base], n) for n, (base, _) in wanted.items()}
    prior = None if d["prior"] is None else prior_from_dict(d["prior"])
    statistics = None if d["statistics"] is None else statistics_from_dict(d["statistics"], known)
    cpds = {
        n: cpd_from_dict(d["cpds"][n], known[n], [known[p] for p in parents], prior, statistics)
        for n, (_, parents) in wanted.items()
    }
    first = Given({n: cpds[n] for n in cpds if n not in variables}) if kind is Given else kind()
    hidden = [str(n) for n in d.get("hidden", []) if n in variables]
    fitted: dict[str, Any] = {"statistics": statistics, "prior": prior, "estimate": ESTIMATES[d["estimate"]]}
    fitted |= {"fit_info": str(d["fit_info"]), "incomplete": bool(d.get("incomplete")), "hidden": hidden}
    return Chain.of(template, variables, cpds, **fitted, first_slices=first, fixed=_fixed_nodes(d.get("fixed", {}), cpds))


def _fixed_nodes(said: dict[str, Any], cpds: dict[str, Cpd]) -> dict[str, bool | tuple[str, ...]]:
    """What was fixed, checked."""
    fixed: dict[str, bool | tuple[str, ...]] = {n: known is True or tuple(known) for n, known in said.items()}
    for node, known in fixed.items():
        if node not in cpds or (isinstance(known, tuple) and not set(known) <= set(cpds[node].entries)):
            raise FormatError(f"the file says that {known} of {node!r} was fixed, and the chain has no such parameters")
    return fixed


READERS = {"chain": ("chain", _chain)}
