"""Chains in Suffice's own JSON, which keeps all of them.

    {"suffice": "chain", "version": 1, "fit_info", "estimate",
     "variables": [those of a slice, as in a network],
     "parents": {variable: [parents, the lagged ones as "x[-1]", in the order of the axes]},
     "first_parents": null | [{variable: [parents]} for each step until all lags exist] (null where parents that do not exist
                      are left out), "first": "free" | "stationary" | "diffuse" | "given",
     "cpds": {variable, or variable at a first step as in "x[0]": as in a network}, "prior", "statistics": as in a network}

"incomplete" and "hidden" are there where some cells were not; "fixed", {node: true or [its entries]}, where something was.
Which columns told sequences apart is not kept.

Linear chains of labels in Suffice's own JSON:

    {"suffice": "crf", "version": 1, "fit_info", "label", "labels": […], "min_count", "unseen", "bias",
     "all_transitions",
     "windows": [{"columns": ["word" | {"type": "suffix", "column", "length"}, …], "at": [−1, 1]}, …],
     "values": [for each column at each place, in the order of the windows, [values], or null if it holds numbers],
     "first": [the first weight of each attribute, and their number], "of": [the label of each weight],
     "pairs": [[label before, label], …], "weights": [of attributes, then of pairs]}

Attributes are the bias, if there is one, then the values of each place. A function of one's own (`Derived`) is not written.

Of a chain that is not plain also: "pairs": true in windows, and

    "order": 1 | 2, "transitions": [{"type": "bio" | "bioes"} | {"type": "transitions", "forbidden": [[a, b], …], "only"}, …],
    "pair_first": [the first weight of two labels of each attribute, and their number], "pair_of": [[label before, label], …],
    "triples": [three labels in a row, …]

and "weights" go on with those of "pair_of", then of "triples".
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from suffice.basis.variables import by_name, variable_from_dict, variable_to_dict
from suffice.engines.sequences.lagged import rename
from suffice.errors import FormatError
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
from suffice.models.crf import Crf
from suffice.models.linear_chain.features import PairFeatures
from suffice.models.linear_chain.transitions import BIO, BIOES, Transitions, all_allowed
from suffice.models.linear_chain.vocabulary import Vocabulary
from suffice.models.linear_chain.wider_features import WiderFeatures
from suffice.models.linear_chain.windows import Derived, LinearChain, Lower, Prefix, Shape, Suffix, Window
from suffice.statistics.counts import array_of, flat

FIRST: dict[str, Any] = {"free": Free, "stationary": Stationary, "diffuse": Diffuse, "given": Given}
KINDS: dict[str, Any] = {"suffix": Suffix, "prefix": Prefix, "shape": Shape, "lower": Lower, "derived": Derived}
RULES: dict[str, Any] = {"bio": BIO, "bioes": BIOES, "transitions": Transitions}


def _chain_content(chain: Chain) -> dict[str, Any]:
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
    around = {n: [known[p] for p in parents] for n, (_, parents) in wanted.items()}
    cpds = {n: cpd_from_dict(d["cpds"][n], known[n], around[n], prior, statistics) for n in wanted}
    first = Given({n: cpds[n] for n in cpds if n not in variables}) if kind is Given else kind()
    hidden = [str(n) for n in d.get("hidden", []) if n in variables]
    fitted: dict[str, Any] = {"statistics": statistics, "prior": prior, "estimate": ESTIMATES[d["estimate"]]}
    fitted |= {"fit_info": str(d["fit_info"]), "incomplete": bool(d.get("incomplete")), "hidden": hidden}
    fixed: dict[str, bool | tuple[str, ...]] = {n: own is True or tuple(own) for n, own in d.get("fixed", {}).items()}
    for node, own in fixed.items():
        if node not in cpds or (isinstance(own, tuple) and not set(own) <= set(cpds[node].entries)):
            raise FormatError(f"the file says that {own} of {node!r} was fixed, and the chain has no such parameters")
    return Chain.of(template, variables, cpds, **fitted, first_slices=first, fixed=fixed)


def _crf_content(crf: Crf) -> dict[str, Any]:
    """What is written of a linear chain."""
    chain, features, wider = crf.linear_chain, crf.features, dict[str, Any]()
    if isinstance(features, WiderFeatures):
        wider = {
            "order": chain.order,
            "transitions": [_rule(rule) for rule in chain.transitions],
            "pair_first": features.pair_first.tolist(),
            "pair_of": np.stack([features.pair_before, features.pair_after], axis=1).tolist(),
            "triples": features.triples.tolist(),
        }
    return {
        "fit_info": crf.fit_info,
        "label": chain.label,
        "labels": list(crf.labels),
        "min_count": chain.min_count,
        "unseen": chain.unseen,
        "bias": chain.bias,
        "all_transitions": chain.all_transitions,
        "windows": [
            {"columns": [_column(c) for c in w.columns], "at": list(w.at), **({"pairs": True} if w.pairs else {})}
            for w in chain.features
        ],
        "values": [None if v is None else list(v) for v in crf.vocabulary.values],
        "first": features.first.tolist(),
        "of": features.labels.tolist(),
        "pairs": np.stack([features.before, features.after], axis=1).tolist(),
        **wider,
        "weights": flat(crf.weight_vector),
    }


def _rule(rule: Any) -> dict[str, Any]:
    word = next((w for w, kind in RULES.items() if type(rule) is kind), None)
    if word is None:
        raise FormatError(f"constraints of the type {type(rule).__name__} cannot be written to a file: use Transitions")
    if word != "transitions":
        return {"type": word}
    only = {} if rule.only is None else {"only": [list(pair) for pair in rule.only]}
    return {"type": word, "forbidden": [list(pair) for pair in rule.forbidden], **only}


def _column(column: Any) -> Any:
    if isinstance(column, str):
        return column
    word = next((w for w, kind in KINDS.items() if isinstance(column, kind)), None)
    if word is None:
        raise FormatError(f"a derived column of the type {type(column).__name__} cannot be written to a file: use Derived")
    options = {"name": column.name} if word == "derived" else {"length": column.length} if hasattr(column, "length") else {}
    return {"type": word, "column": column.column, **options}


def _crf(d: dict[str, Any]) -> Crf:
    windows = []
    for w in d["windows"]:
        columns = [_value_of_type(c, KINDS, "a derived column is") for c in w["columns"]]
        windows.append(Window(columns, at=[int(o) for o in w["at"]], pairs=bool(w.get("pairs", False))))
    how: dict[str, Any] = {name: bool(d[name]) for name in ("bias", "all_transitions")}
    how["order"] = d.get("order", 1)
    how["transitions"] = [_value_of_type(r, RULES, "constraints are") for r in d.get("transitions", ())]
    chain = LinearChain(str(d["label"]), windows, int(d["min_count"]), bool(d["unseen"]), **how)
    values = tuple(None if v is None else tuple(map(str, v)) for v in d["values"])
    if len(values) != len(chain.places):
        raise FormatError(f"there are values for {len(values)} places, and the windows have {len(chain.places)}")
    vocabulary = Vocabulary(chain, tuple(map(str, d["labels"])), values)
    plain = _features(d, vocabulary)
    features = plain if chain.is_plain else _wider_features(d, vocabulary, plain)
    return Crf(vocabulary, features, array_of(d["weights"]), fit_info=str(d["fit_info"]))


def _value_of_type(d: Any, kinds: dict[str, Any], what: str) -> Any:
    """A value of one of these kinds, by its type and its fields; a name is itself."""
    if isinstance(d, str):
        return d
    if d["type"] not in kinds:
        raise FormatError(f"{what} {', '.join(kinds)}, not {d['type']!r}")
    return kinds[d["type"]](**{name: value for name, value in d.items() if name != "type"})


def _features(d: dict[str, Any], vocabulary: Vocabulary) -> PairFeatures:
    L, first, labels = len(vocabulary.labels), np.array(d["first"], np.int64), np.array(d["of"], np.int32)
    pairs = np.array(d["pairs"], np.int32).reshape(-1, 2)
    _check(vocabulary, first, len(labels), labels, pairs)
    numbers = tuple(vocabulary.starts[i] for i in vocabulary.numbers)
    before, after = (np.ascontiguousarray(column) for column in pairs.T)
    return PairFeatures(L, first, labels, before, after, numbers)


def _wider_features(d: dict[str, Any], vocabulary: Vocabulary, plain: PairFeatures) -> WiderFeatures:
    first, triples = np.array(d["pair_first"], np.int64), np.array(d["triples"], np.int32).reshape(-1, 3)
    pairs = np.array(d["pair_of"], np.int32).reshape(-1, 2)
    _check(vocabulary, first, len(pairs), pairs, triples)
    if len(triples) and vocabulary.chain.order == 1:
        raise FormatError("a chain of order 1 has no weights of three labels in a row")
    before, after = (np.ascontiguousarray(column) for column in pairs.T)
    own: dict[str, Any] = {f.name: getattr(plain, f.name) for f in fields(PairFeatures)}
    wider: dict[str, Any] = {"pair_first": first, "pair_before": before, "pair_after": after, "triples": triples}
    allowed = all_allowed(vocabulary.chain.transitions, vocabulary.labels)
    return WiderFeatures(**own, **wider, allowed=allowed, order=vocabulary.chain.order)


def _check(vocabulary: Vocabulary, first: Any, n: int, *codes: Any) -> None:
    """Refuse first weights that do not rise, and labels that are none."""
    ends = len(first) == vocabulary.size + 1 and first[0] == 0 and first[-1] == n
    if not ends or (np.diff(first) < 0).any():
        raise FormatError(f"the first weights of {vocabulary.size:,} attributes rise from 0 to {n:,}; these do not")
    L = len(vocabulary.labels)
    for some in codes:
        if some.size and not 0 <= some.min() <= some.max() < L:
            raise FormatError(f"labels are numbered from 0 to {L - 1}, and {some.min()} or {some.max()} is none of them")


KNOWN = {"chain": ("chain", _chain_content, _chain), "crf": ("linear chain", _crf_content, _crf)}
