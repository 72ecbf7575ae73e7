"""The words of scores, methods and priors that the page offers, and what they mean in Python."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from suffice.errors import SufficeError
from suffice.registry import every, find, look_up, words
from suffice.structure.results.plan import in_words

EVIDENCE = ("bdeu:1", "k2", "bge")
"""Priors whose evidence is offered as a score."""

_NAME = re.compile(r"\b([A-Z]\w*)\(")


def choices() -> dict[str, list[dict[str, str]]]:
    """What the registry has, each with the first sentence that is said of it."""
    evidence = [{"word": word, "text": f"the evidence under {found_prior(word)!r}"} for word in EVIDENCE]
    priors = [{"word": "mle", "text": "no prior: maximum likelihood"}, *_word_list("priors")]
    return {"scores": [*_word_list("scores"), *evidence], "methods": _word_list("methods"), "priors": priors}


def _word_list(kind: str) -> list[dict[str, str]]:
    """Those that need nothing said besides."""
    told = []
    for word in words(kind):
        piece = find(kind, word)
        try:
            piece.of_word(word, {})
        except SufficeError:
            continue
        first = " ".join((piece.__doc__ or "").split("\n\n")[0].split())
        told.append({"word": word, "text": re.split(r"(?<=[.;:])\s", first)[0].rstrip(".;:")})
    return told


def score_of(word: str | None) -> Any:
    """A score, or the evidence under a prior."""
    if not word:
        return None
    piece = find("scores", word.partition(":")[0])
    if piece is not None:
        return piece.of_word(word, {})
    from suffice.scores import Evidence

    return Evidence(found_prior(word))


def found_prior(word: str) -> Any:
    """A prior by its word."""
    name = word.partition(":")[0]
    return look_up("priors", name, f"the score or prior {word!r}").of_word(word, {})


def method_of(word: str | None, max_parents: int | None) -> Any:
    """A method of search, with its own maximum of parents if it has one."""
    if not word and max_parents is None:
        return None
    piece = look_up("methods", (word or "orders").partition(":")[0], f"the method {word!r}")
    takes = "max_parents" in getattr(piece, "__dataclass_fields__", {})
    if max_parents is not None and not takes:
        raise SufficeError(f"the method {word} has no maximum of parents: leave it out")
    return piece.of_word(word or "orders", {} if max_parents is None else {"max_parents": max_parents})


def python_of(value: Any) -> str:
    """A value as Python has it after `import suffice as sf`."""
    kinds = ("methods", "priors", "scores")
    homes = {piece.__name__.removesuffix("Prior"): kind for kind in kinds for piece in every(kind).values()}
    homes |= {"Evidence": "scores", "EBIC": "choices"}

    def home(match: re.Match[str]) -> str:
        return f"sf.{homes[match[1]]}.{match[1]}(" if match[1] in homes else match[0]

    return _NAME.sub(home, in_words(value) if getattr(value, "listed_in", "") == "methods" else repr(value))


def in_csv(names: Sequence[str]) -> str:
    """Names as options list them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()
