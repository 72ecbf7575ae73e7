"""The words of `suffice learn` for tests of independence, and for what is believed of a graph before data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suffice.cli.words.vocabulary import edges_of
from suffice.errors import SufficeError
from suffice.graphs.text import Edge
from suffice.registry import look_up
from suffice.scores import CasteloSiebes, GraphPosterior, KollerFriedman
from suffice.structure.tests.independence import TableTest

STRUCTURE_PRIORS = ("koller-friedman", "castelo-siebes")


def independence_of(word: str | None) -> Any:
    """A test of independence; that of tables counts what is not empty, as PC does by itself.

    >>> independence_of("chi2"), independence_of("likelihood-ratio")
    (ChiSquared(adjusted=True), LikelihoodRatio())
    """
    if word is None:
        return None
    test = look_up("tests", word.strip().lower(), f"the --test {word!r}")
    return test(adjusted=True) if issubclass(test, TableTest) else test()


def number_of(text: str, what: str) -> float:
    """A number that stands in a word.

    >>> number_of("0.5", "the score ebic:0.5")
    0.5
    """
    try:
        return float(text)
    except ValueError:
        raise SufficeError(f"{what} has no number {text!r}") from None


def with_structure_prior(score: Any, words: str | None, beliefs: Sequence[str]) -> Any:
    """The score with a structure prior: `koller-friedman`, or `castelo-siebes:0.1` with beliefs `A,B=0.9` in edges.

    >>> from suffice import BIC
    >>> with_structure_prior(BIC(), "koller-friedman", [])
    GraphPosterior(score=BIC(), prior=KollerFriedman())
    >>> with_structure_prior(BIC(), None, ["a -> b=0.9"]).prior.beliefs
    {('a', 'b'): 0.9}
    """
    if words is None and not beliefs:
        return score
    word, colon, number = (words or "castelo-siebes").strip().lower().partition(":")
    if word not in STRUCTURE_PRIORS:
        raise SufficeError(f"--structure-prior is koller-friedman or castelo-siebes:0.1, not {words!r}")
    if word == "koller-friedman":
        if colon or beliefs:
            raise SufficeError("--structure-prior koller-friedman takes no number and no --belief; castelo-siebes does")
        return GraphPosterior(score, KollerFriedman())
    given: dict[Edge, float] = {}
    for text in beliefs:
        edge, equals, p = text.rpartition("=")
        for pair in edges_of([edge], "--belief") if equals else ():
            given[pair] = number_of(p, f"--belief {text}")
    if len(given) < len(beliefs):
        raise SufficeError("--belief takes an edge and its probability, as in 'A,B=0.9' or 'A -> B=0.9'")
    others = {"others": number_of(number, f"--structure-prior {words}")} if colon else {}
    return GraphPosterior(score, CasteloSiebes(given, **others))
