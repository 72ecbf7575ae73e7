"""Priors, objectives and penalties in words of the command line.

PRIOR     WORD[:NUMBER][/OPTION=VALUE]…     a word of a prior; options are the arguments of its Python name
NODE      NAME=PRIOR or NAME=9,1;1,1        pseudo-counts: a number, a vector over the states, lines of a table
several   joined by +                       a name with + or = in it stands in double quotes
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from suffice.basis.registry import every, find, look_up
from suffice.basis.registry import words as words_of
from suffice.errors import SufficeError, listing
from suffice.families.priors.empirical_bayes import EmpiricalBayes
from suffice.families.protocol.family import Mean, Mode
from suffice.graphs.text import Edge, read_directed
from suffice.incomplete.first_slices import Diffuse, Free, Stationary
from suffice.interfaces.cli.inputs import fields, number_in
from suffice.objectives.principles import Bayes
from suffice.objectives.scores import Evidence
from suffice.structure.problem import is_directed

ESTIMATES = {"mean": Mean(), "mode": Mode()}
FIRST = {"free": Free(), "stationary": Stationary(), "diffuse": Diffuse()}
"""How sequences begin."""

BETWEEN = re.compile(r'\+(?!(?<=\d[eE]\+)\d)(?=(?:[^"]*"[^"]*")*[^"]*$)')
"""A + between priors: not in quotes, nor in a number such as 1e+3."""
NAMED = re.compile(r'\s*(?:"(?P<quoted>[^"]*)"|(?P<name>[^"=/]*?))\s*=(?P<rest>.*)', re.DOTALL)
NUMERIC = re.compile(r"\s*[-+.\d]")


def prior_of(words: str) -> Any:
    """`mle`, `bdeu:10`, `bdeu:auto`, `k2`, `nig/df=5`, ..., pseudo-counts of a node, `lung=9,1;1,1`, or several: `bdeu:1+bge`."""
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
    """A number, a vector `9,1` or a table `9,1;1,1`."""
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
        options = listing(known, style="str") or "none"
        raise SufficeError(f"the prior {word!r} has no option {key!r}; {word.split('/')[0]} takes {options}")
    if not equals:
        return key, True
    return key, None if value == "auto" else numbers_of(value, word)


def _by_evidence(name: str, prior: Any, given: dict[str, Any]) -> Any:
    """The prior whose number the data chooses."""
    if prior.chooses:
        return prior(**given, **{prior.after_colon[0]: None})
    if not prior.worth:
        able = [n for n, p in every("priors").items() if p.word == n and p.after_colon and (p.chooses is True or p.worth)]
        after = listing(able, style="str")
        raise SufficeError(f"the data cannot choose a number of {name}: leave auto out, or write it after {after}")
    return EmpiricalBayes(prior(**given))


def penalty_of(words: str | None) -> Any:
    """A penalty on weights: `l1:0.1`, `l2:1`, or their sum, `l1:0.1+l2:1`; None where there is none."""
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
    `conditional:y`, `margin:y` or `perceptron:y`, of labels without it; None where nothing is said."""
    if words is None:
        return None
    word, colon, rest = words.strip().partition(":")
    word = word.lower()
    if word == "bayes":
        return Bayes(prior_of(prior_words(words, "mle")[1]))
    objective = look_up("objectives", word, f"--objective {words!r}", " or bayes:PRIOR")
    if objective.after_colon == ("target", str):
        if not (rest or target):
            raise SufficeError(f"--objective {word} is about one variable: {word}:NAME")
        return objective(rest or target)
    return objective.of_word(word + colon + rest, {})


def prior_words(objective: str | None, prior: str) -> tuple[str | None, str]:
    """An objective and a prior in words, of which `bayes:bdeu:10` is both; `bayes` alone is that of `--prior`."""
    word, _, rest = (objective or "").strip().partition(":")
    if word.lower() != "bayes":
        return objective, prior
    if rest and prior != "mle":
        raise SufficeError(f"--objective {objective} is --prior {rest}, and --prior {prior} was given, too: leave one out")
    if (rest or prior) == "mle":
        raise SufficeError("--objective bayes is of a prior: bayes:bdeu:10; without one, likelihood")
    return None, rest or prior


def score_of(words: str) -> Any:
    """`bic`, `aic`, `loglik`, `ebic:0.5`, or the evidence under a prior: `bdeu:1`, `k2`, `bge`, `bdeu:1+bge`."""
    word, colon, rest = words.strip().partition(":")
    if (score := find("scores", word.lower())) is not None:
        return score.of_word(word.lower() + colon + rest, {})
    if find("priors", word.lower().split("/")[0]) is not None or "+" in words or "=" in words:
        return Evidence(prior_of(words))
    known = ", ".join([*words_of("scores"), *words_of("priors")])
    raise SufficeError(f"the score {words!r} is not known; use {known}, with a number as in bdeu:1")


def method_of(words: str, **options: Any) -> Any:
    """A method of search, as in `orders` or `tan:TARGET`, with those of the options that are not None."""
    word, colon, value = words.partition(":")
    method = look_up("methods", word.lower(), f"the method {words!r}", ", with tan the class as in tan:TARGET")
    given = {k: v for k, v in options.items() if v is not None}
    for option in given:
        if not takes(word, option):
            raise SufficeError(f"the method {word} has no option --{option.replace('_', '-')}")
    return method.of_word(word.lower() + colon + value, given)


def takes(words: str, option: str) -> bool:
    """Whether a method has an option of this name."""
    method = find("methods", words.partition(":")[0].lower())
    return method is None or option in method.__dataclass_fields__  # of what is no method `method_of` speaks best


def is_graph_method(words: str) -> bool:
    """Whether a method finds graphs without arrows."""
    word = words.strip().lower()
    return word.endswith("-graph") or not is_directed(find("methods", word.partition(":")[0]))


def selection_of(words: str | None) -> Any:
    """What a penalty is chosen by: `ebic`, `ebic:0.5`, `stars:0.05`, `cv:5`."""
    if words is None:
        return None
    text = words.strip().lower()
    selection = look_up("selections", text.partition(":")[0], f"--select {words!r}", ", with a number as in ebic:0.5")
    return selection.of_word(text, {})


def strength_of(words: str | None) -> float | None:
    """The penalty of a search: one number."""
    try:
        return None if words is None else float(words)
    except ValueError:
        raise SufficeError(f"--penalty of a search is one number, as in --penalty 0.1; not {words!r}") from None


def sampler_of(words: str) -> Any:
    """How a question is answered: `exact` (None), or by draws, as in `lw`, `lw:10000` or `gibbs:5000`."""
    text = words.strip().lower()
    if text == "exact":
        return None
    return look_up("samplers", text.partition(":")[0], f"the method {words!r}", ", as in lw:10000, or exact").of_word(text, {})


def plate_of(dag: Any, group: str | None, inside: str | None, pooling: str | None) -> Any:
    """The graph, or the plate that repeats it over the groups of a column."""
    from suffice.learning.complete.plates import Partial, Plate, Pooled, Separate

    if group is None:
        for option, value in (("--inside", inside), ("--pooling", pooling)):
            if value is not None:
                raise SufficeError(f"{option} is of groups: name the column that makes them, --group COLUMN")
        return dag
    word, _, rest = (pooling or "separate").partition(":")
    if word not in ("separate", "pooled", "partial", "reml") or (rest and word in ("separate", "pooled")):
        raise SufficeError(
            f"--pooling is separate, pooled, partial, partial:10, partial:dose, reml or reml:dose, not {pooling!r}"
        )
    chosen: Any = Separate() if word == "separate" else Pooled()
    if word in ("partial", "reml"):
        number = number_in(rest)
        slopes = fields(rest) if number is None else ()
        chosen = Partial(number, slopes, restricted=word == "reml")
    return Plate(dag, group=group, inside=None if inside is None else fields(inside), pooling=chosen)


def ties_of(words: Sequence[str] | None) -> list[tuple[str, ...]] | None:
    """Groups of nodes that share their parameters, each as names by the rules of CSV; None where none are spoken of."""
    return None if words is None else [tuple(fields(text)) for text in words]


def fixed_of(words: Sequence[str] | None) -> dict[str, Any]:
    """Nodes that EM leaves as they are, or some of their entries, as `em` takes them."""
    result: dict[str, Any] = {}
    for text in words or ():
        name, equals, entries = (part.strip() for part in text.partition("="))
        if not name or (equals and not entries):
            raise SufficeError(f"--fixed takes a node, or some entries of one, as in 'level=intercept,variance'; not {text!r}")
        if name in result:
            raise SufficeError(f"--fixed names {name!r} twice")
        result[name] = fields(entries) if equals else True
    return result


def mechanism_of(words: Sequence[str]) -> dict[str, list[str]]:
    """What the gaps of columns depend on."""
    result = {}
    for text in words:
        column, equals, on = text.partition("=")
        if not equals or not column.strip():
            raise SufficeError(f"--missing-depends-on is COLUMN=NAME,NAME, as in income=income,age; not {text!r}")
        result[column.strip()] = [name.strip() for name in fields(on)] if on.strip() else []
    return result


def edges_of(words: Sequence[str], option: str) -> list[Edge]:
    """Edges as pairs `A,B`, by the rules of CSV, or as arrows: `A -> B`."""
    result: list[Edge] = []
    for text in words:
        if re.search(r"->|<-|→|←", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)):
            result += read_directed(text)[1]
            continue
        ends = fields(text)
        if len(ends) != 2 or not all(ends):
            raise SufficeError(
                f"{option} takes one edge, parent first: 'A,B' or 'A -> B', names with marks in quotes; not {text!r}"
            )
        result.append((ends[0], ends[1]))
    return result


def constraints_of(require: Sequence[str], forbid: Sequence[str], tiers: str | None, max_parents: int | None) -> Any:
    """The constraints that options spell, None when there are none."""
    from suffice.structure.constraints import Constraints, Forbid, MaxParents, Require, read_tiers

    parts: list[Constraints] = []
    if require:
        parts.append(Require(*edges_of(require, "--require")))
    if forbid:
        parts.append(Forbid(*edges_of(forbid, "--forbid")))
    if tiers is not None:
        parts.append(read_tiers(tiers))
    if max_parents is not None:
        parts.append(MaxParents(max_parents))
    return Constraints(*parts) if parts else None
