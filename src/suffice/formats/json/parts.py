"""What networks and chains have in common in Suffice's own JSON: distributions, statistics, arrays of numbers.

`json_model` says how they are written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from suffice.errors import FormatError, SufficeError
from suffice.families import family_of
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Cpd
from suffice.families.protocol.plain_numbers import array_of as array_of
from suffice.families.protocol.plain_numbers import flat as flat
from suffice.families.protocol.plain_numbers import numbers as numbers
from suffice.registry import find_type
from suffice.statistics import Counts, Moments, Statistics
from suffice.statistics.configurations import sizes
from suffice.statistics.file import check_statistics, derived_from_dict, derived_to_dict
from suffice.statistics.suppression import Suppression
from suffice.variables import Count, Finite, Variable

VERSION = 1
T = TypeVar("T")


def read_as(text: str, kind: str, what: str, make: Callable[[dict[str, Any]], T]) -> T:
    """What is made of a JSON text of this kind; `what` is what an error calls it.

    >>> read_as('{"suffice": "coin", "version": 1, "side": "head"}', "coin", "coin", lambda d: d["side"])
    'head'
    """
    try:
        d = json.loads(text)
        unicode_only(text, d)
        if not isinstance(d, dict) or d.get("suffice") != kind:
            raise FormatError(f"this JSON is not a {what} of Suffice")
        if d.get("version") != VERSION:
            raise FormatError(
                f"this {what} was written by another version of Suffice (format {d.get('version')!r}, known {VERSION})"
            )
        with np.errstate(all="ignore"):  # numbers that are too large are refused, without a warning before
            return make(d)
    except SufficeError:
        raise
    except json.JSONDecodeError as error:
        raise FormatError(f"this is not JSON: {error.msg}", line=error.lineno) from None
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, ArithmeticError) as error:
        raise FormatError(f"this {what} is incomplete or damaged ({type(error).__name__}: {error})") from None


def unicode_only(text: str, content: object) -> None:
    r"""Refuse JSON with half a character in it, which an escape can write and nothing else can hold.

    >>> unicode_only('"\\ud83d\\ude00"', "\U0001f600")
    """
    if "\\ud" in text.lower():
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise FormatError("this file holds text that is not Unicode: half of a surrogate pair") from None


def with_distributions(variables: Mapping[str, Variable], cpds: Mapping[str, Any]) -> dict[str, Variable]:
    """The variables, with the families that were chosen for their nodes."""
    kinds = {n: find_type("cpds", d["type"]) for n, d in cpds.items()}
    return {n: v if kinds.get(n) is None else kinds[n].variable_of(cpds[n], v) for n, v in variables.items()}


def cpd_from_dict(
    d: dict[str, Any],
    child: Variable,
    parents: Sequence[Variable],
    prior: Prior | None,
    statistics: Statistics | None,
    together: Any = None,
) -> Cpd:
    """The distribution that `Cpd.to_dict` wrote; `together` is what was seen of it where parameters are shared."""
    kind = find_type("cpds", d["type"])
    if kind is None or not isinstance(child, kind.children):
        raise FormatError(f"the CPD of {child.name!r} is {d['type']!r}, which does not fit {child!r}")
    if kind.is_regression:
        regression: Cpd = kind.from_dict(d, child, parents, None, None)
        return regression
    own: Any = None if statistics is None else statistics.answer(family_of(child, parents).needs(child, parents))
    imagined: Any = None if prior is None else prior.imagine(child, parents)
    cpd: Cpd = kind.from_dict(d, child, parents, own if together is None else together, imagined)
    return cpd


def statistics_to_dict(statistics: Statistics) -> dict[str, Any]:
    """Statistics as plain values."""
    entries = []
    for e in statistics:
        d: dict[str, Any] = {"finite": list(e.names), "real": list(e.request.real)}
        if isinstance(e, Counts):
            d |= {"values": flat(e.values), "keys": None if e.keys is None else e.keys.tolist()}
        else:
            parts = {k: flat(getattr(e, k)) for k in ("count", "mean", "rest", "scatter")}
            d |= {"keys": e.keys.tolist(), **parts, **derived_to_dict(e.derived)}
            d |= {"log_base": flat(e.sums)} if e.derived else {}
        entries.append(d)
    suppression = statistics.suppression
    said = {} if suppression is None else {"suppression": suppression.to_dict(statistics)}
    return {"weight": statistics.weight, "entries": entries, **said}


def statistics_from_dict(d: dict[str, Any], variables: Mapping[str, Variable]) -> Statistics:
    """The statistics that `statistics_to_dict` wrote."""
    entries: list[Counts | Moments] = []
    for e in d["entries"]:
        finite = tuple(v for n in e["finite"] if isinstance(v := variables[n], Finite))
        k = len(e["real"])
        if k:
            n = len(e["keys"])
            mean, rest = (array_of(e[part]).reshape(n, k) for part in ("mean", "rest"))
            scatter = array_of(e["scatter"]).reshape(n, k, k)
            counts = [r for r in e["real"] if isinstance(variables[r], Count)] if "log_base" in e else []
            derived = derived_from_dict(e, counts)
            base = array_of(e["log_base"]).reshape(n, len(derived)) if derived else np.zeros((n, 0))
            parts = (e["keys"], array_of(e["count"]), mean, scatter)
            entries.append(Moments(finite, tuple(e["real"]), *parts, rest=rest, derived=derived, sums=base))
        elif e["keys"] is None:
            entries.append(Counts(finite, array_of(e["values"]).reshape(sizes(finite))))
        else:
            entries.append(Counts(finite, array_of(e["values"]), e["keys"]))
    suppression = Suppression.from_dict(d.get("suppression", {}), entries)
    return check_statistics(Statistics(entries, d["weight"], variables.values(), suppression))
