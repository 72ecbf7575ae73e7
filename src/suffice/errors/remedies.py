"""Ways out of a refusal, each in the words of Python and in those of the command line.

A message has a `Remedy` in it as f-strings have values: there both words stand, between marks that no text has, and whoever
prints the message takes one of them. So it can be part of another message, and travels between processes, as any text does.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

OPEN, BETWEEN, CLOSE = "\ufdd0", "\ufdd1", "\ufdd2"
"""Marks of a remedy: code points that Unicode keeps for a program's own use, and that no text may have."""

_MARKED = re.compile(f"{OPEN}([^{OPEN}-{CLOSE}]*){BETWEEN}([^{OPEN}-{CLOSE}]*){CLOSE}")


@dataclass(frozen=True)
class Remedy:
    """A way out as Python has it, and as the command line has it; one that has none there is the empty text.

    >>> text = f"allow fewer parents, {Remedy('max_parents=2', '--max-parents 2')}"
    >>> in_python(text), in_options(text)
    ('allow fewer parents, max_parents=2', 'allow fewer parents, --max-parents 2')
    """

    python: str
    option: str

    def __str__(self) -> str:
        return f"{OPEN}{self.python}{BETWEEN}{self.option}{CLOSE}"


def in_python(text: str) -> str:
    """A message with its ways out in Python."""
    return _MARKED.sub(r"\1", text) if OPEN in text else text


def in_options(text: str) -> str:
    """A message with its ways out in options of the command line."""
    return _MARKED.sub(r"\2", text) if OPEN in text else text


def argument(name: str, value: object = "", word: object = None) -> Remedy:
    """An argument and its option, with the value that each takes, if one is named."""
    word = value if word is None else word
    return Remedy(f"{name}={value}", _option(name) + (f" {shlex.quote(str(word))}" if word != "" else ""))


def name_of(argument: str) -> Remedy:
    """The name of an argument, and of its option."""
    return Remedy(argument, _option(argument))


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def declaration(name: str, kind: str, call: str = "{}") -> Remedy:
    """What a column is declared to be, `Real`, `Finite`, `Count(...)`, `Bins(5)` or `[...]`, its states; and the call for it.

    >>> declaration("age", "Bins(5)").option, declaration("a b", "Real").option, declaration("ill", "[...]").option
    ('--bins age=5', "--real 'a b'", '--finite ill=a,b')
    """
    word, _, number = kind.rstrip(")").partition("(")
    option, value = ("finite", "=a,b") if kind == "[...]" else (word.lower(), f"={number}" if word == "Bins" else "")
    return Remedy(call.format(f"variables={{{name!r}: {kind}}}"), f"--{option} {shlex.quote(name + value)}")


def state_names(name: str, each: Sequence[str]) -> Remedy:
    """The states that a column is declared to have."""
    return Remedy(f"variables={{{name!r}: {list(each)}}}", f"--finite {shlex.quote(name + '=' + ','.join(each))}")


def hidden_with_states(name: str, call: str = "{}") -> Remedy:
    """The declaration of a hidden variable with its states, and the call that takes it."""
    return Remedy(call.format(f"hidden=[Finite({name!r}, [...])]"), f"--hidden {shlex.quote(f'{name}=a,b')}")


def without_column(name: str) -> Remedy:
    """That a column is no node of the graph, and the option that leaves it out of the rows."""
    return Remedy(" of the graph", f": --without {shlex.quote(name)}")


def hidden_variable(name: str) -> Remedy:
    """The declaration of a hidden variable, with states or a number."""
    python = f"hidden=[Finite({name!r}, [...])] or [Real({name!r})]"
    return Remedy(python, f"--hidden {shlex.quote(f'{name}=3')}, or --hidden {shlex.quote(f'{name}=real')}")


REGRESSIONS = {"Logistic": "logistic", "PoissonLog": "poisson", "GammaLog": "gamma-log"}
"""Words of those that messages name."""


def as_regression(node: str, kind: str = "Logistic", *, ridge: bool = False) -> Remedy:
    """A node that is made a regression, perhaps with a ridge."""
    word = REGRESSIONS.get(kind, "WORD") + (":1" if ridge else "")
    return Remedy(f"families={{{node!r}: {kind}({'ridge=1' if ridge else ''})}}", f"--family {shlex.quote(f'{node}={word}')}")


def as_family(node: str, family: str, word: str = "WORD") -> Remedy:
    """A node that is given a family, as Python writes it, and as the command line does."""
    return Remedy(f"families={{{node!r}: {family}}}", f"--family {shlex.quote(f'{node}={word}')}")


def ridge_of(kind: str) -> Remedy:
    """A regression of this kind with a ridge, whatever its node."""
    return Remedy(f"{kind}(ridge=1)", f"a ridge, as in --family NAME={REGRESSIONS.get(kind, 'WORD')}:1")


def weight_penalty(norm: int, strength: object, before: str = "penalty=") -> Remedy:
    """A penalty on weights."""
    return Remedy(f"{before}L{norm}({strength})", f"--penalty l{norm}:{strength}")


def by_evidence(prior: str, what: str = "it") -> Remedy:
    """A prior whose numbers the data chooses, before it is used where that cannot be."""
    python = f"choose {what} first, prior = by_evidence(dag, complete_rows, {prior}), and give that prior"
    return Remedy(python, "give a number, as in bdeu:10")


def query_by_draws(targets: str, after: str = "") -> Remedy:
    """A question that is answered by draws."""
    return Remedy(f"query({targets}, ..., method=LikelihoodWeighting()){after}", "suffice query --method lw:10000")


def score_by(score: str, word: str) -> Remedy:
    """A score of graphs."""
    return Remedy(score, f"--score {word}")


def of_python(text: str) -> Remedy:
    """What only Python has."""
    return Remedy(text, "")


SEQUENCES = Remedy("sequences(data, by='patient', order='day')", "--by COLUMN and --order COLUMN")
FREE, STATIONARY, DIFFUSE = (Remedy(f"{kind}()", f"--first {kind.lower()}") for kind in ("Free", "Stationary", "Diffuse"))
PSEUDO = Remedy("PseudoLikelihood()", "--objective pseudo")
CONTRASTIVE = Remedy("ContrastiveDivergence()", "--objective cd:1")
PERSISTENT = Remedy("ContrastiveDivergence(persistent=True)", "--objective pcd:1")
LIKELIHOOD = Remedy("Likelihood()", "--objective likelihood")
MAX_ENTROPY = Remedy("MaxEntropy()", "--objective max-entropy")
NORMAL_PRIOR = Remedy("NormalInverseGamma()", "--prior nig")
BDEU = Remedy("prior=BDeu(1)", "--prior bdeu:1")
BY_BIC = Remedy("BIC()", "--score bic")
BY_MEAN = Remedy("estimate=Mean()", "--estimate mean")
CONJUGATE = Remedy("Conjugate(1)", "--prior conjugate:1")
BY_DRAWS = Remedy("query(..., method=LikelihoodWeighting())", "suffice query --method lw:10000")
SEPARATE, POOLED, PARTIAL = (Remedy(f"{kind}()", f"--pooling {kind.lower()}") for kind in ("Separate", "Pooled", "Partial"))
DECIMAL_COMMA = Remedy("decimal=','", "--decimal ,")
FAMILIES = Remedy("families=", "--family")
ENCODING = argument("encoding", "'latin-1'", "latin-1")
FIRST_STATIONARY, FIRST_DIFFUSE = (argument("first", f"{kind}()", kind.lower()) for kind in ("Stationary", "Diffuse"))
FAMILY, FAMILY_OPTIONS = Remedy("families", "--family"), Remedy("families=", "--family options")
INTO_BINS, WITH_BINS = Remedy("into Bins(...)", "with --bins NAME=5"), Remedy("with Bins(...)", "with --bins NAME=5")
MORE_ITERATIONS = Remedy("max_iter=, or method=Squarem()", "--max-iter")
BY_SAMPLING = Remedy(
    "ask by sampling instead: bn.query(..., method=LikelihoodWeighting())", "ask for a target by sampling, --method lw:10000"
)
TEXT_OPTIONS = Remedy("separator, decimal and encoding", "--separator, --decimal and --encoding")
NUMBER_PRIORS = Remedy("NormalInverseGamma() or BGe()", "--prior nig or bge")
TABLE_PRIORS = Remedy("Dirichlet(1) or BDeu(1)", "--prior dirichlet:1 or bdeu:1")
ANY_PRIOR = Remedy("Dirichlet(1), BDeu(1) or NormalInverseGamma()", "--prior bdeu:1+nig")
DECLARED = Remedy("variables= in scan declares them", "--count and --finite declare them")
BINS = Remedy("into Bins", "with --bins NAME=5")
DRAWN_ROWS = Remedy("method=LikelihoodWeighting() to predict or predict_proba, which then draw", "--method lw:10000, to draw")
BY_EM = Remedy("em", "suffice fit")
CONSTRAINTS = Remedy("Require(...) or Forbid(...)", "--require or --forbid")
WEIGHTING = Remedy("LikelihoodWeighting()", "--method lw:10000")
BY_WEIGHTING = argument("method", "LikelihoodWeighting()", "lw:10000")
LASSO = Remedy("search(data, method=GraphicalLasso())", "suffice learn --method glasso")
BY_SCORES = Remedy("HillClimb(), Tabu(), Orders(), GES() or Exact()", "--method hill-climb, tabu, orders, ges or exact")
TIERS = Remedy("Tiers(['age', 'sex'], ['smoke'])", "a tier of names on each line")
