"""Linear chains of labels in Suffice's own JSON:

    {"suffice": "crf", "version": 1, "fit_info", "label", "labels": […], "min_count", "unseen", "bias",
     "all_transitions",
     "windows": [{"columns": ["word" | {"type": "suffix", "column", "length"}, …], "at": [−1, 1]}, …],
     "values": [for each column at each place, in the order of the windows, [values], or null if it holds numbers],
     "first": [the first weight of each attribute, and their number], "of": [the label of each weight],
     "pairs": [[label before, label], …], "weights": [of attributes, then of pairs]}

Attributes are the bias, if there is one, then the values of each place. A function of one's own (`Derived`) is not written.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from suffice.errors import FormatError
from suffice.formats.json_parts import VERSION, array_of, flat, read_as
from suffice.models.crf import Crf
from suffice.models.linear_chain.derived import Derived, Lower, Prefix, Shape, Suffix
from suffice.models.linear_chain.features import PairFeatures
from suffice.models.linear_chain.vocabulary import Vocabulary
from suffice.models.linear_chain.windows import LinearChain, Window

KINDS: dict[str, Any] = {"suffix": Suffix, "prefix": Prefix, "shape": Shape, "lower": Lower, "derived": Derived}


def write(crf: Crf) -> str:
    """The text of a linear chain."""
    return json.dumps(_model(crf), ensure_ascii=False, allow_nan=False)


def read(text: str) -> Crf:
    """The linear chain that `write` wrote."""
    return read_as(text, "crf", "linear chain", _crf)


def _model(crf: Crf) -> dict[str, Any]:
    chain, features = crf.linear_chain, crf.features
    return {
        "suffice": "crf",
        "version": VERSION,
        "fit_info": crf.fit_info,
        "label": chain.label,
        "labels": list(crf.labels),
        "min_count": chain.min_count,
        "unseen": chain.unseen,
        "bias": chain.bias,
        "all_transitions": chain.all_transitions,
        "windows": [{"columns": [_column(c) for c in w.columns], "at": list(w.at)} for w in chain.features],
        "values": [None if v is None else list(v) for v in crf.vocabulary.values],
        "first": features.first.tolist(),
        "of": features.labels.tolist(),
        "pairs": np.stack([features.before, features.after], axis=1).tolist(),
        "weights": flat(crf.weight_vector),
    }


def _column(column: Any) -> Any:
    if isinstance(column, str):
        return column
    word = next((w for w, kind in KINDS.items() if isinstance(column, kind)), None)
    if word is None:
        raise FormatError(f"a derived column of the type {type(column).__name__} cannot be written to a file: use Derived")
    options = {"name": column.name} if word == "derived" else {"length": column.length} if hasattr(column, "length") else {}
    return {"type": word, "column": column.column, **options}


def _crf(d: dict[str, Any]) -> Crf:
    windows = [Window([_column_of(c) for c in w["columns"]], at=[int(o) for o in w["at"]]) for w in d["windows"]]
    flags = {name: bool(d[name]) for name in ("bias", "all_transitions")}
    chain = LinearChain(str(d["label"]), windows, int(d["min_count"]), bool(d["unseen"]), **flags)
    values = tuple(None if v is None else tuple(map(str, v)) for v in d["values"])
    if len(values) != len(chain.places):
        raise FormatError(f"there are values for {len(values)} places, and the windows have {len(chain.places)}")
    vocabulary = Vocabulary(chain, tuple(map(str, d["labels"])), values)
    features = _features(d, vocabulary)
    return Crf(vocabulary, features, array_of(d["weights"]), fit_info=str(d["fit_info"]))


def _column_of(column: Any) -> Any:
    if isinstance(column, str):
        return column
    options = {k: v for k, v in column.items() if k != "type"}
    if column["type"] not in KINDS:
        raise FormatError(f"a derived column is {', '.join(KINDS)}, not {column['type']!r}")
    return KINDS[column["type"]](**options)


def _features(d: dict[str, Any], vocabulary: Vocabulary) -> PairFeatures:
    L, first, labels = len(vocabulary.labels), np.array(d["first"], np.int64), np.array(d["of"], np.int32)
    pairs = np.array(d["pairs"], np.int32).reshape(-1, 2)
    ends = len(first) == vocabulary.size + 1 and first[0] == 0 and first[-1] == len(labels)
    if not ends or (np.diff(first) < 0).any():
        raise FormatError(f"the first weights of {vocabulary.size:,} attributes rise from 0 to {len(labels):,}; these do not")
    for codes in (labels, pairs.reshape(-1)):
        if len(codes) and not 0 <= codes.min() <= codes.max() < L:
            raise FormatError(f"labels are numbered from 0 to {L - 1}, and {codes.min()} or {codes.max()} is none of them")
    numbers = tuple(vocabulary.starts[i] for i in vocabulary.numbers)
    before, after = (np.ascontiguousarray(column) for column in pairs.T)
    return PairFeatures(L, first, labels, before, after, numbers)
