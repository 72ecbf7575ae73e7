"""The words of the command line, each in one table: what they mean in the Python interface."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suffice.engines.scan import scan
from suffice.errors import SchemaError, SufficeError, listed
from suffice.families.family import Mean, Mode
from suffice.families.priors import K2, BDeu, BGe, Dirichlet, NormalInverseGamma
from suffice.formats import NAMES, SUFFIXES, load, read
from suffice.graphs import Dag
from suffice.models.bayes_net import BayesNet
from suffice.statistics import Statistics
from suffice.variables import Bins, Finite, Real

PRIORS: dict[str, Any] = {"bdeu": BDeu, "k2": K2, "dirichlet": Dirichlet, "nig": NormalInverseGamma, "bge": BGe}
ESTIMATES = {"mean": Mean(), "mode": Mode()}
INTEGERS: dict[str, dict[str, Any]] = {"real": {}, "finite": {"integers": Finite}}


def prior_of(words: str) -> Any:
    """`mle`, `bdeu:10`, `k2`, `dirichlet:1`, `nig`, `bge`, or several: `bdeu:1+bge`.

    >>> prior_of("bdeu:10"), prior_of("mle")
    (BDeu(ess=10.0), None)
    """
    if words == "mle":
        return None
    priors = []
    for word in words.split("+"):
        name, _, number = word.strip().lower().partition(":")
        if name not in PRIORS:
            raise SufficeError(
                f"the prior {word!r} is not known; use mle, {', '.join(sorted(PRIORS))}, with a number as in bdeu:10"
            )
        try:
            priors.append(PRIORS[name](float(number)) if number else PRIORS[name]())
        except (TypeError, ValueError) as error:
            if isinstance(error, SufficeError):
                raise
            raise SufficeError(f"the prior {word!r} does not take the number {number!r}") from None
    return priors[0] if len(priors) == 1 else tuple(priors)


def chosen(table: dict[str, Any], word: str, what: str) -> Any:
    if word not in table:
        raise SufficeError(f"{what} is {' or '.join(table)}, not {word!r}")
    return table[word]


def is_model(path: str) -> bool:
    """Whether the name of a file is that of a network."""
    name = path.lower().removesuffix(".gz")
    return Path(name).suffix in SUFFIXES


def graph_of(text: str) -> tuple[Dag, BayesNet | None]:
    """A graph from a network's file (with the network), a text file, or the text itself: 'a -> b; b -> c'."""
    if any(arrow in text for arrow in ("->", "<-", "→", "←")) or text.lstrip().startswith("["):
        return Dag(text), None
    if is_model(text) or text in NAMES:
        bn = model_of(text)
        return bn.dag, bn
    if not Path(text).is_file():
        raise SufficeError(f"there is no file {text!r}, and it is not a graph either; write a graph like 'a -> b; b -> c'")
    try:
        return Dag(Path(text).read_text("utf-8-sig")), None
    except (OSError, UnicodeDecodeError) as error:
        raise SufficeError(f"{text}: the graph cannot be read ({error})") from None


def model_of(text: str) -> BayesNet:
    """A network from a file, or a bundled one by its name.

    >>> len(model_of("asia"))
    8
    """
    return load(text) if text in NAMES and not Path(text).exists() else read(text)


def declarations(finite: Sequence[str], real: Sequence[str], bins: Sequence[str]) -> dict[str, Any]:
    """`--finite a,b`, `--finite smoke=no,yes`, `--real x`, `--bins age=18,65`, `--bins age=5`.

    >>> declarations(["smoke=no,yes"], [], ["age=5"])["age"]
    Bins(how=5, method='quantile', target=None)
    """
    result: dict[str, Any] = {}
    for words in finite:
        name, equals, states = words.partition("=")
        result |= {name: Finite(name, states.split(","))} if equals else dict.fromkeys(words.split(","), Finite)
    for words in real:
        result |= dict.fromkeys(words.split(","), Real)
    for words in bins:
        name, _, cuts = words.partition("=")
        try:
            numbers = [float(c) for c in cuts.split(",") if c.strip()]
        except ValueError:
            numbers = []
        if not numbers:
            raise SchemaError(f"--bins takes NAME=5 (a number of bins), NAME=18,65 or NAME=18, (cut points); not {words!r}")
        result[name] = Bins(numbers if "," in cuts or not numbers[0].is_integer() else int(numbers[0]))
    return result


def data_of(path: str, variables: dict[str, Any] | None = None, **options: Any) -> Any:
    """Data from a path: rows, or statistics that were saved."""
    if path.lower().endswith(".stats"):
        if variables or any(options.values()):
            raise SufficeError(
                f"{path} holds statistics, not rows: columns cannot be declared, weighted or read otherwise any more"
            )
        return Statistics.load(path)
    return scan(path, variables=variables or None, **options)


def as_known(rows: Any, bn: BayesNet, declared: dict[str, Any]) -> Any:
    """Rows, or statistics, with the states of a network, but for columns that the user declared."""
    if isinstance(rows, Statistics):
        return bn.summary(rows)
    return rows.with_variables({n: v for n, v in bn.variables.items() if n in rows.columns and n not in declared})


def known_names(names: Sequence[str], bn: BayesNet) -> list[str]:
    lacking = [n for n in names if n not in bn]
    if lacking:
        raise SufficeError(f"the network has no node {listed(lacking)}")
    return list(names)
