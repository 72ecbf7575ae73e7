"""The words of the command line, each in one table: what they mean in the Python interface."""

from __future__ import annotations

import csv
import dataclasses
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from suffice.cli.words.priors import PRIORS as PRIORS
from suffice.cli.words.priors import prior_of as prior_of
from suffice.engines.sequences.sequences import Missing, Refuse
from suffice.errors import SufficeError
from suffice.families.chosen.node_kinds import KINDS, distribution_of
from suffice.families.named_families import distributed
from suffice.families.protocol.family import Mean, Mode
from suffice.graphs.text import Edge, read_directed
from suffice.incomplete.first_slices import Diffuse, Free, Stationary
from suffice.scores import AIC, BIC, Evidence, LogLikelihood
from suffice.structure.undirected.selection import EBIC
from suffice.variables import Count, Finite, Real

ESTIMATES = {"mean": Mean(), "mode": Mode()}
SCORES: dict[str, Any] = {"bic": BIC, "aic": AIC, "loglik": LogLikelihood, "ebic": EBIC}
METHODS: dict[str, tuple[str, str, str | None]] = {
    "orders": ("structure.methods.orders", "Orders", None),
    "hill-climb": ("structure.methods.hill_climb", "HillClimb", None),
    "tabu": ("structure.methods.hill_climb", "Tabu", None),
    "ges": ("structure.methods.ges", "GES", None),
    "exact": ("structure.methods.exact", "Exact", None),
    "chow-liu": ("structure.methods.chow_liu", "ChowLiu", None),
    "tan": ("structure.methods.chow_liu", "TAN", "target"),
    "pc": ("structure.methods.pc", "PC", None),
    "mmhc": ("structure.methods.pc", "MMHC", None),
    "glasso": ("structure.undirected.graphical_lasso", "GraphicalLasso", None),
    "neighbourhoods": ("structure.undirected.neighbourhoods", "Neighbourhoods", None),
    "decomposable": ("structure.undirected.decomposable", "Decomposable", None),
    "stepwise": ("recipes.stepwise", "Stepwise", None),
    "chow-liu-graph": ("structure.methods.chow_liu", "ChowLiu", None),
}
"""A method's module, its class, and the option whose value stands after a colon."""
FAMILIES: dict[str, tuple[str, str, type | None]] = {
    "linear": ("responses", "Linear", None),
    "logistic": ("logistic", "Logistic", Finite),
    "probit": ("responses", "Probit", Finite),
    "ordinal": ("ordinal", "ProportionalOdds", Finite),
    "binomial": ("responses", "BinomialLogit", Count),
    "poisson": ("responses", "PoissonLog", Count),
    "negative-binomial": ("responses", "NegativeBinomialLog", Count),
    "gamma-log": ("responses", "GammaLog", None),
    "gamma-inverse": ("responses", "GammaInverse", None),
}
"""A regression's module, its class, and what a column of whole numbers is taken for if it is one."""
GRAPHS = ("glasso", "neighbourhoods", "decomposable", "stepwise", "chow-liu-graph")
"""Those of the methods whose edges have no direction."""
SELECTIONS: dict[str, tuple[str, type[int] | type[float]]] = {
    "ebic": ("EBIC", float),
    "stars": ("StARS", float),
    "cv": ("HeldOut", int),
}
"""What a penalty is chosen by, and what the number after a colon is."""
SAMPLERS = {"lw": "LikelihoodWeighting", "gibbs": "Gibbs"}
"""Methods of `query` beside the exact one."""
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
    word = words.strip().lower()
    if word in SCORES:
        return SCORES[word]()
    if word.startswith("ebic:"):
        try:
            return EBIC(float(word.partition(":")[2]))
        except ValueError as error:
            raise error if isinstance(error, SufficeError) else SufficeError(f"the score {words!r} has no number") from None
    try:
        return Evidence(prior_of(words))
    except SufficeError as error:
        if re.split("[:/]", word)[0] in PRIORS or "+" in word or "=" in word:
            raise
        known = ", ".join([*SCORES, *sorted(PRIORS)])
        raise SufficeError(f"the score {words!r} is not known; use {known}, with a number as in bdeu:1") from error


def method_of(words: str, **options: Any) -> Any:
    """A method of search, as in `orders` or `tan:CLASS`, with those of the options that are not None.

    >>> method_of("hill-climb", max_parents=2, alpha=None).max_parents
    2
    """
    word, colon, value = words.partition(":")
    if word.lower() not in METHODS:
        raise SufficeError(f"the method {words!r} is not known; use {', '.join(METHODS)}, with tan the class as in tan:CLASS")
    argument = METHODS[word.lower()][2]
    if bool(colon) != (argument is not None):
        raise SufficeError(
            f"write tan:CLASS, with the column that is the class; not {words!r}"
            if argument
            else f"the method {word} takes nothing after a colon, as in {words!r}"
        )
    given = {k: v for k, v in options.items() if v is not None} | ({argument: value} if argument else {})
    for option in given:
        if not takes(word, option):
            raise SufficeError(f"the method {word} has no option --{option.replace('_', '-')}")
    return _method(word)(**given)


def _method(word: str) -> Any:
    module, name, _ = METHODS[word.lower()]
    return getattr(import_module(f"suffice.{module}"), name)


def is_graph_method(words: str) -> bool:
    """Whether a method finds graphs without arrows.

    >>> is_graph_method("glasso"), is_graph_method("orders")
    (True, False)
    """
    return words.strip().lower() in GRAPHS


def selection_of(words: str | None) -> Any:
    """What a penalty is chosen by: `ebic`, `ebic:0.5`, `stars:0.05`, `cv:5`.

    >>> selection_of("ebic:0.25"), selection_of("cv:5")
    (EBIC(gamma=0.25), HeldOut(folds=5))
    """
    if words is None:
        return None
    word, colon, number = words.strip().lower().partition(":")
    if word not in SELECTIONS:
        raise SufficeError(f"--select is ebic:0.5, stars:0.05 or cv:5, not {words!r}")
    name, kind = SELECTIONS[word]
    value = getattr(import_module("suffice.structure.undirected.selection"), name)
    try:
        return value(kind(number)) if colon else value()
    except ValueError as error:
        if isinstance(error, SufficeError):
            raise
        raise SufficeError(f"--select {words}: after the colon stands a number, not {number!r}") from None


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
        word, colon, ridge = kind.lower().partition(":")
        if not equals or not name or word not in (*FAMILIES, *KINDS):
            raise SufficeError(
                f"--family takes a node and a regression or distribution, as in 'y=logistic', 'n=poisson:1,offset=t' or "
                f"'wait=gamma'; not {text!r}; regressions are {', '.join(FAMILIES)}; distributions are {', '.join(KINDS)}"
            )
        if name in result:
            raise SufficeError(f"--family names {name!r} twice")
        if (chosen := _distribution(text, word, ridge, options)) is not None:
            result[name] = chosen
            continue
        result[name] = _family(text, word, ridge if colon else "0", options)
    return result


def _distribution(text: str, word: str, ridge: str, options: Sequence[str]) -> Any:
    """A distribution, with its known number where it needs one; None where the word is a regression's alone, or this is one."""
    given: dict[str, str] = {key.strip(): value.strip() for key, _, value in (option.partition("=") for option in options)}
    kind = KINDS.get(word)
    if kind is None or (word in FAMILIES and kind.constant not in given):
        return None
    numbers = {key: _number(value) for key, value in given.items()}
    if ridge or None in numbers.values():
        raise SufficeError(f"--family {text}: a distribution has no ridge, and its {kind.constant or 'options'} must be a number")
    try:
        return distribution_of(word, {key: x for key, x in numbers.items() if x is not None})
    except SufficeError as error:
        raise SufficeError(f"--family {text}: {error}") from None


def _family(text: str, word: str, ridge: str, options: Sequence[str]) -> Any:
    module, name, _ = FAMILIES[word]
    family = getattr(import_module(f"suffice.families.regressions.{module}"), name)
    known = [f.name for f in dataclasses.fields(family) if f.name in ("offset", "trials")]
    given: dict[str, Any] = {}
    for option in options:
        key, _, value = (part.strip() for part in option.partition("="))
        if key not in known or not value:
            raise SufficeError(
                f"--family {text}: {word} takes {' and '.join(f'{k}=NAME' for k in known) or 'no roles of parents'}"
            )
        given[key] = value
    try:
        return family(ridge=float(ridge), **given)
    except ValueError as error:
        if isinstance(error, SufficeError):
            raise
        raise SufficeError(f"--family {text}: the ridge is a number, not {ridge!r}") from None


def declared_by(families: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """What the columns of regressions are by their families: counts and trials, or states even if they are written as numbers.

    >>> declared_by(families_of(["n=poisson", "y=linear"]), ["n", "y"])
    {'n': Count('n')}
    """
    kinds = {name: kind for _, name, kind in FAMILIES.values() if kind is not None}
    chosen: dict[str, Any] = {n: v for n, v in distributed(families).items() if n in columns}
    families = {n: f for n, f in families.items() if n not in distributed(families)}
    found = {n: kinds.get(type(f).__name__) for n, f in families.items()}
    found |= {f.trials: Count for f in families.values() if f.trials is not None}
    return chosen | {n: Count(n) if kind is Count else Finite for n, kind in found.items() if kind is not None and n in columns}


def ties_of(words: Sequence[str] | None) -> list[tuple[str, ...]] | None:
    """Groups of nodes that share their parameters, each as names by the rules of CSV; None where none are spoken of.

    >>> ties_of(["q1,q2,q3", 'a,"b, c"'])
    [('q1', 'q2', 'q3'), ('a', 'b, c')]
    """
    if not words:
        return None
    return [tuple(fields(text)) for text in words]


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


def mechanism_of(words: Sequence[str] | None) -> dict[str, list[str]] | None:
    """What the gaps of columns depend on; None where it is not said.

    >>> mechanism_of(["income=income,age", "age="])
    {'income': ['income', 'age'], 'age': []}
    """
    if not words:
        return None
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
    word, colon, number = words.strip().lower().partition(":")
    if word == "exact" and not colon:
        return None
    if word not in SAMPLERS or (colon and not number.isdecimal()):
        known = ", ".join(f"{s}:10000" for s in SAMPLERS)
        raise SufficeError(f"the method {words!r} is not known; use exact, or draws with their number: {known}")
    method = getattr(import_module("suffice.inference.sampling.sampling"), SAMPLERS[word])
    return method(n=int(number)) if number else method()


def takes(words: str, option: str) -> bool:
    """Whether a method has an option of this name.

    >>> takes("hill-climb", "max_parents")
    True
    """
    word = words.partition(":")[0].lower()
    return word not in METHODS or option in _method(word).__dataclass_fields__  # of what is no method `method_of` speaks best


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
    from suffice.structure.constraints.constraints import Constraints, Forbid, MaxParents, Require, read_tiers

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


def estimate_of(word: str) -> Any:
    """Which point of the posterior is taken: `mean` or `mode`."""
    return chosen(ESTIMATES, word, "--estimate")


def chosen(table: dict[str, Any], word: str, what: str) -> Any:
    if word not in table:
        raise SufficeError(f"{what} is {' or '.join(table)}, not {word!r}")
    return table[word]
