"""What `suffice fit` and `predict` read of linear chains of labels: conditional random fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from suffice.engines.reading.conll import SENTENCE, SUFFIXES, parts_sentences, read_conll
from suffice.engines.scan import matching_files
from suffice.errors import SufficeError, listing, note
from suffice.formats import writable
from suffice.interfaces.cli import inputs, words
from suffice.interfaces.cli.arguments import OF_GAPS, Options, refuse
from suffice.learning.fit import fit
from suffice.models.linear_chain.transitions import BIO, BIOES, Transitions
from suffice.models.linear_chain.windows import LinearChain, Lower, Prefix, Shape, Suffix, Window
from suffice.objectives.principles import Conditional

DERIVED: dict[str, Any] = {"suffix": Suffix, "prefix": Prefix, "shape": Shape, "lower": Lower}
"""What is derived of a column; the first two with a number of letters, as in suffix3."""

RULES: dict[str, Any] = {"bio": BIO, "bioes": BIOES}

_PAIRS = re.compile(r"\s*pairs\s*\((?P<what>.*)\)\s*$")
_FEATURE = re.compile(r"\s*(?:(?P<how>suffix|prefix)(?P<n>[1-9][0-9]*)|(?P<plain>shape|lower))(?:\s*:\s*(?P<of>[^@]+?))?\s*$")


def windows_of(text: str) -> list[Window]:
    """Columns around a label: `word@-1,0,1; suffix3; shape:word@0`. What is derived is of the first column that is named, unless
    another stands after a colon; without @ it is of the step itself. `pairs(word@0)` has weights of two labels in a row."""
    inner = [(m["what"], True) if (m := _PAIRS.match(part)) else (part, False) for part in text.split(";") if part.strip()]
    parts = [(*(part.rpartition("@")[::2] if "@" in part else (part, "0")), pairs) for part, pairs in inner]
    first = next((name.strip() for name, _, _ in parts if not _FEATURE.match(name)), None)
    windows = []
    for name, places, pairs in parts:
        try:
            at = [int(word) for word in places.split(",")]
        except ValueError:
            raise SufficeError(f"--features: after @ stand steps, as in word@-1,0,1; not {places!r} in {text!r}") from None
        windows.append(Window([_column(name.strip(), first)], at=at, pairs=pairs))
    return windows


def _column(name: str, first: str | None) -> Any:
    found = _FEATURE.match(name)
    if found is None:
        return name
    column = found["of"] or first
    if column is None:
        raise SufficeError(f"--features: {name!r} is derived of a column: name it, as in {name}:word")
    return DERIVED[found["how"]](column, int(found["n"])) if found["how"] else DERIVED[found["plain"]](column)


def transitions_of(text: str | None) -> Any:
    """Which labels may follow which: `bio`, `bioes`, or pairs, `forbid: O -> I-x; <s> -> I-x` or `only: D -> N; N -> V`."""
    if text is None:
        return None
    word, colon, rest = text.partition(":")
    if not colon and word.strip().lower() in RULES:
        return RULES[word.strip().lower()]()
    pairs = [tuple(x.strip() for x in part.split(" -> ")) for part in rest.split(";") if part.strip()]
    named = {"forbid": "forbidden", "only": "only"}.get(word.strip().lower())
    if named is None or not pairs or any(len(pair) != 2 for pair in pairs):
        raise SufficeError(f"--transitions is bio, bioes, 'forbid: O -> I-x; <s> -> I-x' or 'only: D -> N; N -> V'; not {text!r}")
    return Transitions(**{named: pairs})


def label_weights_of(text: str) -> dict[str, float]:
    """Weights of labels: `B-PER=5, I-PER=2`."""
    parts = [part.rpartition("=") for part in text.split(",")]
    weights = [(label.strip(), inputs.number_in(number)) for label, _, number in parts]
    if not all(label and number is not None for label, number in weights):
        raise SufficeError(f"--label-weights is a weight for each of some labels, as in B-PER=5,I-PER=2; not {text!r}")
    return {label: number for label, number in weights if number is not None}


def with_sentences(data: str, by: str | None, names: Sequence[str]) -> tuple[Any, str | None]:
    """Rows, and the column that says which belong together: in a .conll file, and in a .tsv file whose sentences are parted by
    blank lines and which does not begin with names of columns, it is `sentence` if no other is asked for."""
    if by is not None or data.lower().endswith(".stats"):
        return data, by
    files = matching_files(data)
    if {suffix for _, suffix in files} <= set(SUFFIXES):
        return data, SENTENCE
    path, suffix = files[0]
    if len(files) > 1 or suffix != ".tsv" or not parts_sentences(path):
        return data, by
    rows = read_conll(path)
    if any(rows[column][0].as_py() in names for column in rows.column_names):
        return data, by
    note(f"{data}: blank lines end sentences, and columns are called {listing(rows.column_names[1:], style='str')}")
    return rows, SENTENCE


def fit_labels(given: Options) -> Any:
    """The weights of a chain of labels that sequences give."""
    refuse(given, "family shared hidden starts statistics start fixed checkpoint", "is not for undirected models")
    writable(given.out, "crf")
    of_rows = "is for networks of rows, not for a chain of labels"
    refuse(given, OF_GAPS, of_rows)
    refuse(given.read, "finite real bins count", of_rows)
    if given.features is None:
        raise SufficeError("--chain needs --features, what a label depends on, as in 'word@-1,0,1; suffix3; shape'")
    more: dict[str, Any] = {"order": given.labels_back or 1, "transitions": transitions_of(given.transitions)}
    chain = LinearChain(given.chain, windows_of(given.features), min_count=given.min_count, **more)
    objective = words.objective_of(given.objective, given.chain)
    if given.label_weights:
        weights = label_weights_of(given.label_weights)
        if objective is not None and not isinstance(objective, Conditional):
            raise SufficeError("--label-weights goes with --objective conditional, which is the default")
        objective = Conditional(given.chain, label_weights=weights)
    table, by = with_sentences(given.data, given.by, (chain.label, *chain.columns))
    steps = inputs.sequences_of(inputs.data_of(table, given.read, {}), by, given.order)
    limits: dict[str, Any] = {"max_iter": given.max_iter, "time_limit": given.time_limit, "memory_limit": given.memory_limit}
    return fit(chain, steps, objective=objective, penalty=words.penalty_of(given.penalty), **limits)
