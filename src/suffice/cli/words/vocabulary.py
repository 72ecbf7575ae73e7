"""The words of the command line, each in one table: what they mean in the Python interface."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import Any

from suffice.cli.words.objectives import prior_of as prior_of
from suffice.engines.sequences.sequences import Missing, Refuse
from suffice.errors import SufficeError
from suffice.families.chosen.node_kinds import distribution_of
from suffice.families.named_families import variables_with_distributions
from suffice.families.protocol.family import Mean, Mode
from suffice.graphs.text import Edge, read_directed
from suffice.incomplete.first_slices import Diffuse, Free, Stationary
from suffice.registry import find, look_up
from suffice.registry import words as words_of
from suffice.scores import Evidence
from suffice.structure.problem import is_directed
from suffice.variables import Count, Finite, Real

ESTIMATES = {"mean": Mean(), "mode": Mode()}
Words = Sequence[str] | None
"""What an option was given, perhaps several times, or not at all."""
INTEGERS: dict[str, dict[str, Any]] = {"auto": {}, "real": {"integers": Real}, "finite": {"integers": Finite}}
GAPS = {"refuse": Refuse(), "missing": Missing()}
FIRST = {"free": Free(), "stationary": Stationary(), "diffuse": Diffuse()}
"""How sequences begin."""


def score_of(words: str) -> Any:
    """`bic`, `aic`, `loglik`, `ebic:0.5`, or the evidence under a prior: `bdeu:1`, `k2`, `bge`, `bdeu:1+bge`.

    >>> score_of("bic"), score_of("ebic:1"), score_of("bdeu:5")
    (BIC(), EBIC(gamma=1.0), Evidence(prior=BDeu(ess=5.0)))
    """
    word, colon, rest = words.strip().partition(":")
    if (score := find("scores", word.lower())) is not None:
        return score.of_word(word.lower() + colon + rest, {})
    if find("priors", word.lower().split("/")[0]) is not None or "+" in words or "=" in words:
        return Evidence(prior_of(words))
    known = ", ".join([*words_of("scores"), *words_of("priors")])
    raise SufficeError(f"the score {words!r} is not known; use {known}, with a number as in bdeu:1")


def method_of(words: str, **options: Any) -> Any:
    """A method of search, as in `orders` or `tan:TARGET`, with those of the options that are not None.

    >>> method_of("hill-climb", max_parents=2, alpha=None).max_parents
    2
    """
    word, colon, value = words.partition(":")
    method = look_up("methods", word.lower(), f"the method {words!r}", ", with tan the class as in tan:TARGET")
    given = {k: v for k, v in options.items() if v is not None}
    for option in given:
        if not takes(word, option):
            raise SufficeError(f"the method {word} has no option --{option.replace('_', '-')}")
    return method.of_word(word.lower() + colon + value, given)


def is_graph_method(words: str) -> bool:
    """Whether a method finds graphs without arrows.

    >>> is_graph_method("glasso"), is_graph_method("orders"), is_graph_method("chow-liu-graph")
    (True, False, True)
    """
    word = words.strip().lower()
    return word.endswith("-graph") or not is_directed(find("methods", word.partition(":")[0]))


def selection_of(words: str | None) -> Any:
    """What a penalty is chosen by: `ebic`, `ebic:0.5`, `stars:0.05`, `cv:5`.

    >>> selection_of("ebic:0.25"), selection_of("cv:5")
    (EBIC(gamma=0.25), HeldOut(folds=5))
    """
    if words is None:
        return None
    text = words.strip().lower()
    return look_up("selections", text.partition(":")[0], f"--select {words!r}", ", with a number as in ebic:0.5").of_word(
        text, {}
    )


def strength_of(words: str | None) -> float | None:
    """The penalty of a search: one number.

    >>> strength_of("0.2")
    0.2
    """
    try:
        return None if words is None else float(words)
    except ValueError:
        raise SufficeError(f"--penalty of a search is one number, as in --penalty 0.1; not {words!r}") from None


def plate_of(dag: Any, group: str | None, inside: str | None, pooling: str | None) -> Any:
    """The graph, or the plate that repeats it over the groups of a column.

    >>> from suffice import Dag
    >>> plate_of(Dag("dose -> y"), "clinic", "y", "partial:dose").pooling
    Partial(strength=None, slopes=('dose',))
    """
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
        number = _number(rest)
        slopes = fields(rest) if number is None else ()
        chosen = Partial(number, slopes, restricted=word == "reml")
    return Plate(dag, group=group, inside=None if inside is None else fields(inside), pooling=chosen)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def families_of(words: Sequence[str]) -> dict[str, Any]:
    """Regressions of nodes: `y=logistic`, with a ridge `y=logistic:1`, with parents in a role of their own
    `n=poisson,offset=log_time` and `ill=binomial,trials=n`; and distributions by finite parents: `wait=gamma`,
    `ill=binomial,n=12`.

    >>> families_of(["y=logistic:1", "n=poisson,offset=t"])
    {'y': Logistic(ridge=1.0), 'n': PoissonLog(ridge=0.0, offset='t')}
    >>> families_of(["wait=gamma", "ill=binomial,n=12"])
    {'wait': Gamma(), 'ill': Binomial(n=12)}
    """
    result: dict[str, Any] = {}
    for text in words:
        name, equals, rest = (part.strip() for part in text.partition("="))
        kind, *options = fields(rest) or [""]
        if not equals or not name or not kind:
            raise _no_family(text)
        if name in result:
            raise SufficeError(f"--family names {name!r} twice")
        parts = [option.partition("=") for option in options]
        result[name] = _family(text, kind.lower(), {key.strip(): value.strip() for key, _, value in parts})
    return result


def _no_family(text: str) -> SufficeError:
    return SufficeError(
        f"--family takes a node and a regression or distribution, as in 'y=logistic', 'n=poisson:1,offset=t' or 'wait=gamma'; "
        f"not {text!r}; regressions are {', '.join(words_of('regressions'))}; distributions are "
        f"{', '.join((*words_of('distributions'), *words_of('families')))}"
    )


def _family(text: str, kind: str, given: dict[str, str]) -> Any:
    """A regression, or a distribution with its known number: of a word that is both, the options tell which."""
    word = kind.partition(":")[0]
    if (of_states := find("families", word)) is not None:
        return of_states.of_word(kind, given)
    regression: Any = find("regressions", word)
    roles = [r for r in ("offset", "trials") if regression is not None and r in regression.__dataclass_fields__]
    if (regression is None or not given.keys() <= set(roles)) and find("distributions", word) is not None:
        return _distribution(text, kind, given)
    if regression is None:
        raise _no_family(text)
    if not given.keys() <= set(roles) or not all(given.values()):
        raise SufficeError(f"--family {text}: {word} takes {' and '.join(f'{k}=NAME' for k in roles) or 'no roles of parents'}")
    return regression.of_word(kind, given)


def _distribution(text: str, kind: str, given: dict[str, str]) -> Any:
    word, colon, _ = kind.partition(":")
    numbers = {key: _number(value) for key, value in given.items()}
    if colon or None in numbers.values():
        constant = find("distributions", word).constant
        raise SufficeError(f"--family {text}: a distribution has no ridge, and its {constant or 'options'} must be a number")
    try:
        return distribution_of(word, {key: x for key, x in numbers.items() if x is not None})
    except SufficeError as error:
        raise SufficeError(f"--family {text}: {error}") from None


def declared_by(families: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """What the columns of regressions are by their families: counts and trials, or states even if they are written as numbers.

    >>> declared_by(families_of(["n=poisson", "y=linear"]), ["n", "y"])
    {'n': Count('n')}
    """
    chosen: dict[str, Any] = {n: v for n, v in variables_with_distributions(families).items() if n in columns}
    families = {n: f for n, f in families.items() if n not in variables_with_distributions(families)}
    kinds = {n: f.kind for n, f in families.items()} | {f.trials: Count for f in families.values() if f.trials is not None}
    return chosen | {n: Count(n) if kind is Count else Finite for n, kind in kinds.items() if kind is not Real and n in columns}


def ties_of(words: Sequence[str] | None) -> list[tuple[str, ...]] | None:
    """Groups of nodes that share their parameters, each as names by the rules of CSV; None where none are spoken of.

    >>> ties_of(["q1,q2,q3", 'a,"b, c"'])
    [('q1', 'q2', 'q3'), ('a', 'b, c')]
    """
    return None if words is None else [tuple(fields(text)) for text in words]


def fixed_of(words: Sequence[str] | None) -> dict[str, Any]:
    """Nodes that EM leaves as they are, or some of their entries, as `em` takes them.

    >>> fixed_of(["state[0]", "level=intercept,level[-1]"])
    {'state[0]': True, 'level': ['intercept', 'level[-1]']}
    """
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
    """What the gaps of columns depend on.

    >>> mechanism_of(["income=income,age", "age="])
    {'income': ['income', 'age'], 'age': []}
    """
    result = {}
    for text in words:
        column, equals, on = text.partition("=")
        if not equals or not column.strip():
            raise SufficeError(f"--missing-depends-on is COLUMN=NAME,NAME, as in income=income,age; not {text!r}")
        result[column.strip()] = [name.strip() for name in fields(on)] if on.strip() else []
    return result


def sampler_of(words: str) -> Any:
    """How a question is answered: `exact` (None), or by draws, as in `lw`, `lw:10000` or `gibbs:5000`.

    >>> sampler_of("lw:500"), sampler_of("exact")
    (LikelihoodWeighting(n=500), None)
    """
    text = words.strip().lower()
    if text == "exact":
        return None
    return look_up("samplers", text.partition(":")[0], f"the method {words!r}", ", as in lw:10000, or exact").of_word(text, {})


def takes(words: str, option: str) -> bool:
    """Whether a method has an option of this name.

    >>> takes("hill-climb", "max_parents")
    True
    """
    method = find("methods", words.partition(":")[0].lower())
    return method is None or option in method.__dataclass_fields__  # of what is no method `method_of` speaks best


def edges_of(words: Sequence[str], option: str) -> list[Edge]:
    """Edges as pairs `A,B`, by the rules of CSV, or as arrows: `A -> B`.

    >>> edges_of(["a,b", '"x, y",b', "a, b -> c"], "--forbid")
    [('a', 'b'), ('x, y', 'b'), ('a', 'c'), ('b', 'c')]
    """
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
    """The constraints that options spell, None when there are none.

    >>> constraints_of(["a,b"], [], None, 2)
    Require(('a', 'b')) + MaxParents(2)
    """
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


def fields(text: str) -> list[str]:
    """What stands between commas, by the rules of CSV.

    >>> fields('a, "b, c"')
    ['a', 'b, c']
    """
    try:
        return [field.strip() for field in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error as error:
        raise SufficeError(f"{text!r} is not a list with commas ({error})") from None


def choice(table: dict[str, Any], word: str, what: str) -> Any:
    """What a word of a small table means.

    >>> choice(ESTIMATES, "mode", "--estimate")
    Mode()
    """
    if word not in table:
        raise SufficeError(f"{what} is {' or '.join(table)}, not {word!r}")
    return table[word]
