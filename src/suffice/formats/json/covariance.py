"""How well parameters are known that were learned from incomplete rows, in Suffice's own JSON: `json_model` says how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.errors import FormatError
from suffice.families.charts.kinds import chart_of
from suffice.families.protocol.family import Cpd
from suffice.formats.json.parts import array_of, flat
from suffice.models.networks import BayesNet
from suffice.models.parts.parameter_covariance import ParameterCovariance


def covariance_to_dict(bn: BayesNet) -> dict[str, Any]:
    """The covariance of a network's parameters under its name, if it was found."""
    known = bn.found_covariance
    if known is None:
        return {}
    charts = {n: {part: flat(numbers) for part, numbers in chart.parts.items()} for n, chart in known.charts.items()}
    pairs = zip(known.places, known.blocks, strict=True)
    blocks = [{"places": own.tolist(), "values": flat(block[np.tril_indices(len(own))])} for own, block in pairs]
    facts: dict[str, Any] = {"unidentified": sorted(known.unidentified), "posterior": known.posterior}
    facts |= {"copies": dict(known.copies)} if known.copies else {}
    return {"covariance": {"charts": charts, "blocks": blocks, **facts}}


def covariance_from_dict(d: dict[str, Any] | None, cpds: Mapping[str, Cpd]) -> ParameterCovariance | None:
    """What `covariance_to_dict` wrote; None where there is nothing."""
    if d is None:
        return None
    charts = {
        n: chart_of(cpds[n]).around(cpds[n], **{k: array_of(x) for k, x in parts.items()}) for n, parts in d["charts"].items()
    }
    places = tuple(np.array([int(i) for i in block["places"]], np.int64) for block in d["blocks"])
    blocks = tuple(_block(array_of(block["values"]), len(own)) for block, own in zip(d["blocks"], places, strict=True))
    every = np.sort(np.concatenate([np.zeros(0, np.int64), *places]))
    copies = {str(n): str(first) for n, first in d.get("copies", {}).items()}
    if not copies.keys() | set(copies.values()) <= charts.keys() or copies.keys() & set(copies.values()):
        raise FormatError(f"the covariance has copies, {copies}, which do not lead to nodes that have coordinates of their own")
    if not np.array_equal(every, np.arange(sum(chart.size for n, chart in charts.items() if n not in copies))):
        raise FormatError("the blocks of the covariance do not speak of every parameter once")
    return ParameterCovariance(charts, places, blocks, frozenset(map(str, d["unidentified"])), bool(d["posterior"]), copies)


def _block(values: Any, n: int) -> Any:
    """The symmetric matrix of a lower triangle."""
    if len(values) != n * (n + 1) // 2 or np.isnan(values).any():
        raise FormatError(f"a block of the covariance of {n} parameters has {n * (n + 1) // 2} numbers, not {len(values)}")
    matrix = np.zeros((n, n))
    matrix[np.tril_indices(n)] = values
    return matrix + np.tril(matrix, -1).T
