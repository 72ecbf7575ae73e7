"""Priors, objectives and penalties in words of the command line.

PRIOR     WORD[:NUMBER][/OPTION=VALUE]…     a word of a prior; options are the arguments of its Python name
NODE      NAME=PRIOR or NAME=9,1;1,1        pseudo-counts: a number, a vector over the states, lines of a table
several   joined by +                       a name with + or = in it stands in double quotes
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from suffice.errors import SufficeError, listing
from suffice.families.priors.empirical_bayes import EmpiricalBayes
from suffice.objectives import Bayes
from suffice.registry import every, find, look_up

BETWEEN = re.compile(r'\+(?!(?<=\d[eE]\+)\d)(?=(?:[^"]*"[^"]*")*[^"]*$)')
"""A + between priors: not in quotes, nor in a number such as 1e+3."""
NAMED = re.compile(r'\s*(?:"(?P<quoted>[^"]*)"|(?P<name>[^"=/]*?))\s*=(?P<rest>.*)', re.DOTALL)
NUMERIC = re.compile(r"\s*[-+.\d]")


def prior_of(words: str) -> Any:
    """`mle`, `bdeu:10`, `bdeu:auto`, `k2`, `nig/df=5`, ..., pseudo-counts of a node, `lung=9,1;1,1`, or several: `bdeu:1+bge`.

    >>> prior_of("bdeu:10"), prior_of("mle"), prior_of("nig:2/df=5").df
    (BDeu(ess=10.0), None, 5.0)
    >>> prior_of("lung=9,1;1,1+smoke=k2+bdeu:1")
    ({'lung': ((9.0, 1.0), (1.0, 1.0)), 'smoke': K2()}, BDeu(ess=1.0))
    """
    if words.strip().lower() == "mle":
        return None
    by_node: dict[str, Any] = {}
    others: list[Any] = []
    for part in BETWEEN.split(words):
        named = NAMED.fullmatch(part)
        if named is None:
            others.append(_prior(part.strip()))
            continue
        node = named["name"] if named["quoted"] is None else named["quoted"]
        if not node or node in by_node:
            raise SufficeError(f"the prior {words!r} {f'names {node!r} twice' if node else 'has a part without a name before ='}")
        by_node[node] = numbers_of(named["rest"], part) if NUMERIC.match(named["rest"]) else _prior(named["rest"].strip())
    priors = ([by_node] if by_node else []) + others
    return priors[0] if len(priors) == 1 else tuple(priors)


def numbers_of(text: str, whole: str) -> Any:
    """A number, a vector `9,1` or a table `9,1;1,1`.

    >>> numbers_of("2", ""), numbers_of("9,1", ""), numbers_of("9,1;1,1", "")
    (2.0, (9.0, 1.0), ((9.0, 1.0), (1.0, 1.0)))
    """
    try:
        lines = tuple(tuple(float(x) for x in line.split(",")) for line in text.strip().rstrip(";").split(";"))
    except ValueError:
        raise SufficeError(f"in the prior {whole!r}, {text!r} is no number, vector 9,1 or table 9,1;1,1") from None
    return lines if len(lines) > 1 else lines[0] if len(lines[0]) > 1 else lines[0][0]


def _prior(word: str) -> Any:
    if not word:
        raise SufficeError("in the prior nothing stands after = or +: write NAME=9,1 for pseudo-counts, or NAME=bdeu:10")
    head, *options = word.split("/")
    name, _, number = head.strip().lower().partition(":")
    prior = look_up("priors", name, f"the prior {word!r}", " or mle, with a number as in bdeu:10")
    given = dict(_option(option, word, prior) for option in options)
    if number == "auto" and prior.after_colon is not None:
        return _by_evidence(name, prior, given)
    return prior.of_word(head.strip().lower(), given)


def _option(text: str, word: str, prior: Any) -> tuple[str, Any]:
    key, equals, value = (part.strip() for part in text.partition("="))
    known = [f.name for f in dataclasses.fields(prior)]
    if key not in known:
        raise SufficeError(
            f"the prior {word!r} has no option {key!r}; {word.split('/')[0]} takes {listing(known, style='str') or 'none'}"
        )
    if not equals:
        return key, True
    return key, None if value == "auto" else numbers_of(value, word)


def _by_evidence(name: str, prior: Any, given: dict[str, Any]) -> Any:
    """The prior whose number the data chooses."""
    if prior.chooses:
        return prior(**given, **{prior.after_colon[0]: None})
    if not prior.worth:
        able = listing(
            [n for n, p in every("priors").items() if p.word == n and p.after_colon and (p.chooses is True or p.worth)],
            style="str",
        )
        raise SufficeError(f"the data cannot choose a number of {name}: leave auto out, or write it after {able}")
    return EmpiricalBayes(prior(**given))


def penalty_of(words: str | None) -> Any:
    """A penalty on weights: `l1:0.1`, `l2:1`, or their sum, `l1:0.1+l2:1`; None where there is none.

    >>> penalty_of("l1:0.1+l2:1"), penalty_of(None)
    (L1(0.1) + L2(1.0), None)
    """
    total = None
    for word in () if words is None else words.split("+"):
        text = word.strip().lower()
        penalty = find("penalties", text.partition(":")[0])
        if penalty is None or ":" not in text:
            raise SufficeError(f"--penalty is l1:0.1, l2:1, or their sum, l1:0.1+l2:1; not {word!r}")
        own = penalty.of_word(text, {})
        total = own if total is None else total + own
    return total


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
