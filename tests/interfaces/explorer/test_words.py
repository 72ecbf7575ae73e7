"""The words that the page offers mean what Python says beside them."""

from __future__ import annotations

from typing import Any

import pytest

import suffice as sf
from suffice.interfaces.explorer.code import choices, found_prior, method_of, python_of, score_of

OFFERED = [(kind, choice["word"]) for kind, listed in choices().items() for choice in listed if choice["word"] != "mle"]


@pytest.mark.parametrize(("kind", "word"), OFFERED)
def test_what_is_spelled_is_what_is_meant(kind: str, word: str) -> None:
    read: Any = {"scores": score_of, "methods": lambda text: method_of(text, None), "priors": found_prior}[kind]
    assert eval(python_of(read(word)), {"sf": sf}) == read(word)


def test_words_that_are_not_known_are_refused() -> None:
    for read in (score_of, found_prior, lambda word: method_of(word, None)):
        with pytest.raises(sf.SufficeError, match="not known"):
            read("sorcery")  # type: ignore[operator]
