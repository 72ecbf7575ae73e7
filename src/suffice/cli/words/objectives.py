"""The words of `--objective` and `--penalty` as values."""

from __future__ import annotations

from typing import Any

from suffice.cli.words.vocabulary import prior_of
from suffice.errors import SufficeError
from suffice.objectives import Bayes
from suffice.registry import find, look_up


def penalty_of(words: str | None) -> Any:
    """A penalty on weights: `l1:0.1`, `l2:1`, or their sum, `l1:0.1+l2:1`; None where there is none.

    >>> penalty_of("l1:0.1+l2:1"), penalty_of(None)
    (L1(0.1) + L2(1.0), None)
    """
    if words is None:
        return None
    parts = [_penalty(word) for word in words.split("+")]
    return sum(parts[1:], start=parts[0])


def _penalty(words: str) -> Any:
    text = words.strip().lower()
    penalty = find("penalties", text.partition(":")[0])
    if penalty is None or ":" not in text:
        raise SufficeError(f"--penalty is l1:0.1, l2:1, or their sum, l1:0.1+l2:1; not {words!r}")
    return penalty.of_word(text, {})


def objective_of(words: str | None, target: str | None = None) -> Any:
    """What a model is the best of: `likelihood`, `bayes:bdeu:10`, `pseudo`, `cd:1` or `pcd:1`; about one variable, by its name,
    `conditional:y`, `margin:y` or `perceptron:y`, of labels without it; None where nothing is said.

    >>> objective_of("likelihood"), objective_of("conditional:y"), objective_of("margin", "tag"), objective_of("bayes:bdeu:10")
    (Likelihood(), Conditional('y'), Margin('tag', cost=Hamming(cost=1.0)), Bayes(BDeu(ess=10.0)))
    """
    if words is None:
        return None
    word, colon, rest = words.strip().partition(":")
    word = word.lower()
    if word == "bayes":
        return Bayes(prior_of(_prior_word(rest)))
    objective = look_up("objectives", word, f"--objective {words!r}", " or bayes:PRIOR")
    if objective.after_colon == ("target", str):
        if not (rest or target):
            raise SufficeError(f"--objective {word} is about one variable: {word}:NAME")
        return objective(rest or target)
    return objective.of_word(word + colon + rest, {})


def _prior_word(words: str) -> str:
    if words in ("", "mle"):
        raise SufficeError("--objective bayes is of a prior: bayes:bdeu:10; without one, likelihood")
    return words


def prior_words(objective: str | None, prior: str) -> tuple[str | None, str]:
    """An objective and a prior in words, of which `bayes:bdeu:10` is both; `bayes` alone is that of `--prior`.

    >>> prior_words("bayes:bdeu:10", "mle"), prior_words("bayes", "k2"), prior_words("conditional:y", "mle")
    ((None, 'bdeu:10'), (None, 'k2'), ('conditional:y', 'mle'))
    """
    word, _, rest = (objective or "").strip().partition(":")
    if word.lower() != "bayes":
        return objective, prior
    if rest and prior != "mle":
        raise SufficeError(f"--objective {objective} is --prior {rest}, and --prior {prior} was given, too: leave one out")
    return None, _prior_word(rest or prior)


def check_template(*, objective: Any, penalty: Any) -> None:
    """Refuse what no chain of slices takes."""
    from suffice.learning.principles import TEMPLATE

    if objective is not None:
        TEMPLATE.check(objective)
    if penalty is not None:
        raise SufficeError("--penalty is for weights, and a chain of slices has none: leave it out")
