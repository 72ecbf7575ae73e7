"""What `suffice fit`, `predict` and `show` do with linear chains of labels: conditional random fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from suffice.basis.libraries import pa
from suffice.cli.arguments import OF_GAPS, Options, TextOptions, refuse
from suffice.cli.words.objectives import objective_of, penalty_of
from suffice.cli.words.vocabulary import Words
from suffice.errors import SufficeError, listing, note
from suffice.models.linear_chain.transitions import BIO, BIOES, Transitions
from suffice.models.linear_chain.windows import LinearChain, Lower, Prefix, Shape, Suffix, Window
from suffice.objectives import Conditional
from suffice.output.terminal import working

DERIVED: dict[str, Any] = {"suffix": Suffix, "prefix": Prefix, "shape": Shape, "lower": Lower}
"""What is derived of a column; the first two with a number of letters, as in suffix3."""

RULES: dict[str, Any] = {"bio": BIO, "bioes": BIOES}

_PAIRS = re.compile(r"\s*pairs\s*\((?P<what>.*)\)\s*$")
_FEATURE = re.compile(r"\s*(?:(?P<how>suffix|prefix)(?P<n>[1-9][0-9]*)|(?P<plain>shape|lower))(?:\s*:\s*(?P<of>[^@]+?))?\s*$")


def windows_of(text: str) -> list[Window]:
    """Columns around a label: `word@-1,0,1; suffix3; shape:word@0`. What is derived is of the first column that is named, unless
    another stands after a colon; without @ it is of the step itself. `pairs(word@0)` has weights of two labels in a row.

    >>> windows_of("word@-1,0,1; suffix3; shape")
    [Window(['word'], at=(-1, 0, 1)), Window([Suffix(column='word', length=3)], at=(0,)), Window([Shape(column='word')], at=(0,))]
    >>> windows_of("pairs(word@0,1)")
    [Window(['word'], at=(0, 1), pairs=True)]
    """
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


def transitions_of(words: str | None) -> Any:
    """Which labels may follow which: `bio`, `bioes`, or pairs, `forbid: O -> I-x; <s> -> I-x` or `only: D -> N; N -> V`.

    >>> transitions_of("bio"), transitions_of("forbid: O -> I-x; <s> -> I-x")
    (BIO(), Transitions(forbidden=[('O', 'I-x'), ('<s>', 'I-x')]))
    """
    if words is None:
        return None
    word, colon, rest = words.partition(":")
    if not colon and word.strip().lower() in RULES:
        return RULES[word.strip().lower()]()
    pairs = [tuple(x.strip() for x in part.split(" -> ")) for part in rest.split(";") if part.strip()]
    named = {"forbid": "forbidden", "only": "only"}.get(word.strip().lower())
    if named is None or not pairs or any(len(pair) != 2 for pair in pairs):
        raise SufficeError(
            f"--transitions is bio, bioes, 'forbid: O -> I-x; <s> -> I-x' or 'only: D -> N; N -> V'; not {words!r}"
        )
    return Transitions(**{named: pairs})


def label_weights_of(words: str | None) -> dict[str, float]:
    """Weights of labels: `B-PER=5, I-PER=2`.

    >>> label_weights_of("B-PER=5, I-PER=2")
    {'B-PER': 5.0, 'I-PER': 2.0}
    """
    weights = {}
    for part in (words or "").split(",") if words else ():
        label, _, number = part.rpartition("=")
        try:
            weights[label.strip()] = float(number)
        except ValueError:
            label = ""
        if not label.strip():
            raise SufficeError(f"--label-weights is a weight for each of some labels, as in B-PER=5,I-PER=2; not {words!r}")
    return weights


def _objective(given: Options) -> Any:
    """The objective, with the weights of labels."""
    chosen = objective_of(given.objective, given.chain)
    if not (weights := label_weights_of(given.label_weights)):
        return chosen
    if chosen is not None and not isinstance(chosen, Conditional):
        raise SufficeError("--label-weights goes with --objective conditional, which is the default")
    return Conditional(given.chain, label_weights=weights)


def with_sentences(data: str, by: str | None, names: Sequence[str]) -> tuple[Any, str | None]:
    """Rows, and the column that says which belong together: in a .conll file, and in a .tsv file whose sentences are parted by
    blank lines and which does not begin with names of columns, it is `sentence` if no other is asked for."""
    from suffice.engines.reading.conll import SENTENCE, SUFFIXES, parts_sentences, read_conll
    from suffice.engines.scan import matching_files

    if by is not None or data.lower().endswith(".stats"):
        return data, by
    files = matching_files(data)
    if {suffix for _, suffix in files} <= set(SUFFIXES):
        return data, SENTENCE
    path, suffix = files[0]
    if len(files) > 1 or suffix != ".tsv" or not parts_sentences(path):
        return data, by
    words = read_conll(path)
    if any(words[column][0].as_py() in names for column in words.column_names):
        return data, by
    note(f"{data}: blank lines end sentences, and columns are called {listing(words.column_names[1:], style='str')}")
    return words, SENTENCE


def fit_labels(given: Options) -> Any:
    """The weights of a chain of labels that sequences give."""
    from suffice.cli import inputs
    from suffice.formats import writable
    from suffice.learning.fit import fit

    refuse(given, "family shared hidden starts statistics start fixed checkpoint", "is not for undirected models")
    writable(given.out, "crf")
    of_rows = "is for networks of rows, not for a chain of labels"
    refuse(given, OF_GAPS, of_rows)
    refuse(given.read, "finite real bins count", of_rows)
    if given.features is None:
        raise SufficeError("--chain needs --features, what a label depends on, as in 'word@-1,0,1; suffix3; shape'")
    more: dict[str, Any] = {"order": given.labels_back or 1, "transitions": transitions_of(given.transitions)}
    chain = LinearChain(given.chain, windows_of(given.features), min_count=given.min_count, **more)
    objective = _objective(given)
    table, by = with_sentences(given.data, given.by, (chain.label, *chain.columns))
    steps = inputs.sequences_of(inputs.data_of(table, given.read, {}), by, given.order)
    limits: dict[str, Any] = {"max_iter": given.max_iter, "time_limit": given.time_limit, "memory_limit": given.memory_limit}
    return fit(chain, steps, objective=objective, penalty=penalty_of(given.penalty), **limits)


def predict_labels(
    crf: Any, data: str, *, by: str | None, order: str | None, keep: Words, read: TextOptions
) -> tuple[dict[str, Any], str]:
    """The best labels of each sequence and the probability of each label, as columns beside those that are kept."""
    from suffice.cli import inputs

    table, by = with_sentences(data, by, (crf.label, *crf.linear_chain.columns))
    steps = inputs.sequences_of(inputs.data_of(table, read), by, order)
    with working("labelling"):
        labels, shares = crf.predict(steps), crf.predict_proba(steps)
    columns = {crf.label: pa.array(labels), **{f"P({crf.label}={name})": shares[name] for name in crf.labels}}
    return {
        **inputs.beside(table, (by, order), list(keep or ()), list(columns)),
        **columns,
    }, f"{crf.label} of {steps.n_steps:,} steps"


def show_weights(crf: Any, top: int) -> str:
    """The largest weights, one to a line."""
    frame = crf.weights
    rows: Sequence[Any] = list(zip(*(list(frame[name]) for name in ("attribute", "label", "weight")), strict=True))[:top]
    return "\n".join(f"{weight:12.6f}  {attribute} -> {name}" for attribute, name, weight in rows)
