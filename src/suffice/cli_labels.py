"""What `suffice fit`, `predict` and `show` do with linear chains of labels: conditional random fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from suffice.cli_objectives import objective_of, penalty_of
from suffice.cli_words import Words
from suffice.errors import SufficeError
from suffice.libraries import pa
from suffice.models.linear_chain.derived import Lower, Prefix, Shape, Suffix
from suffice.models.linear_chain.windows import LinearChain, Window
from suffice.terminal import working

DERIVED: dict[str, Any] = {"suffix": Suffix, "prefix": Prefix, "shape": Shape, "lower": Lower}
"""What is derived of a column; the first two with a number of letters, as in suffix3."""

_FEATURE = re.compile(r"\s*(?:(?P<how>suffix|prefix)(?P<n>[1-9][0-9]*)|(?P<plain>shape|lower))(?:\s*:\s*(?P<of>[^@]+?))?\s*$")


def windows_of(text: str) -> list[Window]:
    """Columns around a label: `word@-1,0,1; suffix3; shape:word@0`. What is derived is of the first column that is named, unless
    another stands after a colon; without @ it is of the step itself.

    >>> windows_of("word@-1,0,1; suffix3; shape")
    [Window(['word'], at=(-1, 0, 1)), Window([Suffix(column='word', length=3)], at=(0,)), Window([Shape(column='word')], at=(0,))]
    """
    parts = [part.rpartition("@")[::2] if "@" in part else (part, "0") for part in text.split(";") if part.strip()]
    first = next((name.strip() for name, _ in parts if not _FEATURE.match(name)), None)
    return [Window([_column(name.strip(), first)], at=_places(places, text)) for name, places in parts]


def _column(name: str, first: str | None) -> Any:
    found = _FEATURE.match(name)
    if found is None:
        return name
    column = found["of"] or first
    if column is None:
        raise SufficeError(f"--features: {name!r} is derived of a column: name it, as in {name}:word")
    return DERIVED[found["how"]](column, int(found["n"])) if found["how"] else DERIVED[found["plain"]](column)


def _places(words: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in words.split(","))
    except ValueError:
        raise SufficeError(f"--features: after @ stand steps, as in word@-1,0,1; not {words!r} in {text!r}") from None


def fit_labels(
    label: str,
    features: str | None,
    data: str,
    *,
    by: str | None,
    order: str | None,
    min_count: int,
    objective: str | None,
    penalty: str | None,
    read: dict[str, Any],
    limits: dict[str, Any],
) -> Any:
    """The weights of a chain of labels that sequences give."""
    from suffice import cli_inputs as inputs
    from suffice.learning.fit import fit

    if features is None:
        raise SufficeError("--chain needs --features, what a label depends on, as in 'word@-1,0,1; suffix3; shape'")
    chain = LinearChain(label, windows_of(features), min_count=min_count)
    steps = inputs.sequences_of(inputs.data_of(data, **read), by, order)
    return fit(chain, steps, objective=objective_of(objective, label), penalty=penalty_of(penalty), **limits)


def predict_labels(
    crf: Any, data: str, *, by: str | None, order: str | None, keep: Words, missing: Words
) -> tuple[dict[str, Any], str]:
    """The best labels of each sequence and the probability of each label, as columns beside those that are kept."""
    from suffice import cli_inputs as inputs
    from suffice.cli_sequences import beside

    steps = inputs.sequences_of(inputs.data_of(data, missing=missing), by, order)
    with working("labelling"):
        labels, shares = crf.predict(steps), crf.predict_proba(steps)
    columns = {crf.label: pa.array(labels), **{f"P({crf.label}={name})": shares[name] for name in crf.labels}}
    return {**beside(data, (by, order), list(keep or ()), list(columns)), **columns}, f"{crf.label} of {steps.n_steps:,} steps"


def show_weights(crf: Any, top: int) -> str:
    """The largest weights, one to a line."""
    frame = crf.weights
    rows: Sequence[Any] = list(zip(*(list(frame[name]) for name in ("attribute", "label", "weight")), strict=True))[:top]
    return "\n".join(f"{weight:12.6f}  {attribute} -> {name}" for attribute, name, weight in rows)
