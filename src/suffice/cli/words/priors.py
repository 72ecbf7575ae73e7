"""Priors in words of the command line: `bdeu:10`, `nig/df=5`, pseudo-counts and priors of single nodes, and several of them.

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
from suffice.registry import every, look_up

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
    """One prior, with what is said after a colon and slashes."""
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
        able = listing([n for n, p in every("priors").items() if p.word == n and _can_be_chosen(p)], style="str")
        raise SufficeError(f"the data cannot choose a number of {name}: leave auto out, or write it after {able}")
    return EmpiricalBayes(prior(**given))


def _can_be_chosen(prior: Any) -> bool:
    return prior.after_colon is not None and (prior.chooses is True or bool(prior.worth))
