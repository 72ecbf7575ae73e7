"""Ways out of errors and notes: as Python has them, and as the command line has them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

OBJECTIVES = {"Likelihood": "likelihood", "Bayes": "bayes", "PseudoLikelihood": "pseudo", "ContrastiveDivergence": "cd:1"}
"""Objectives of Python as the command line has them; the others are about a name."""


def _objective(found: re.Match[str]) -> str:
    word = OBJECTIVES.get(found[1], found[1].lower() + (f":{found[2]}" if found[2] else ""))
    return f"the nearest is --objective {word}"


QUOTED = r"'([^']*)'"


def _quoted(name: str) -> str:
    """A name that stands in a message, as a shell needs it."""
    return shlex.quote(name[1:-1])


def _shell(option: str, word: str) -> Callable[[re.Match[str]], str]:
    """An option with a word that has parts of what was found in it, as a shell needs it."""
    return lambda found: option + shlex.quote(found.expand(word))


def _integers(found: re.Match[str]) -> str:
    return f"--integers {found[1].lower()}, or --{found[1].lower()} {_quoted(found[2])}"


def _states(found: re.Match[str]) -> str:
    return "--finite " + shlex.quote(f"{found[1][1:-1]}={','.join(re.findall(QUOTED, found[2]))}")


def _two_finite(found: re.Match[str]) -> str:
    return " ".join(f"--finite {shlex.quote(name[1:-1] + '=a,b')}" for name in found.groups())


NAMED = {";": "semicolon", "|": "bar", "\\t": "tab", ",": "comma"}
"""Words for separators, which a shell may take for something else."""


HINTS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"hidden=\[Finite\('[^']*', \[\.\.\.\]\)\] or \[Real\('([^']*)'\)\], or (--hidden [^ ]+=3)", r"\2, or --hidden \1=real"),
    (r"say order=,", "say --order,"),
    (r"\bgiven= ", "--given "),
    (
        r"(?:em\(dag, data, )?hidden=\[Finite\('([^']*)', \[[^\]]*\]\)\]\)?(?:, or --hidden [^ ]+=a,b)?",
        _shell(r"--hidden ", r"\1=a,b"),
    ),
    (r"the nearest is Bayes\(BDeu\(1\)\)", "the nearest is --objective bayes:bdeu:1"),
    (r"the nearest is ([A-Z]\w+)\((?:'([^']*)')?\)", _objective),
    (r"penalty=L([12])\(([0-9.]+)\)", r"--penalty l\1:\2"),
    (r"leave it out of hidden=", "leave it out of --hidden"),
    (r"search with max_parents=(\d+)", r"search with --max-parents \1"),
    (r"gather\(data, max_parents=(\d+)\)", r"suffice gather --max-parents \1"),
    (r"score=EBIC\(1\)", "--score ebic:1"),
    (r"\bRequire\(\.\.\.\) or Forbid\(\.\.\.\)", "--require or --forbid"),
    (r"\(max_parents\)", "(--max-parents)"),
    (r"\(memory_limit\)", "(--memory-limit)"),
    (
        r"give the graph, em\(dag, data, hidden=\[Real\('([^']*)'\)\]\), or factors\(data, k\) for all columns",
        r"give the graph, suffice fit DAG DATA --hidden \1:real",
    ),
    (
        r"hidden=\[Finite\('([^']*)', \[[^\]]*\]\)\] or \[Real\('[^']*'\)\], or --hidden [^ ]+=3",
        r"--hidden \1=3 or --hidden \1=real",
    ),
    (r"sequences\(data, by='patient', order='day'\); by=None for one sequence", "--by COLUMN and --order COLUMN"),
    (r"sequences\(data, by=(?:'patient'|\.\.\.), order=(?:'day'|\.\.\.)\)", "--by COLUMN and --order COLUMN"),
    (r"gaps=Missing\(\)", "--gaps missing"),
    (r"unknown=Missing\(\)", "--unknown missing"),
    (r"leave order out", "leave --order out"),
    (r"\b(by|order)=(?= |;|$)", r"--\1"),
    (r"first=(Free|Stationary|Diffuse)\(\)", lambda found: f"--first {found[1].lower()}"),
    (r"\b(Free|Stationary|Diffuse)\(\)", lambda found: f"--first {found[1].lower()}"),
    (r"\bfirst= ", "--first "),
    (r"ask without best", "ask without --best"),
    (r"scan\(data, integers=(Finite|Real)\) or variables=\{('[^']*'): (?:Finite|Real)\}", _integers),
    (r"variables=\{('[^']*'): (Finite|Real)\}", lambda found: f"--{found[2].lower()} {_quoted(found[1])}"),
    (r"integers=(Finite|Real)", lambda found: f"--integers {found[1].lower()}"),
    (r"variables=\{('[^']*'): \[('[^\]]*')\]\}", _states),
    (r"decimal=','", "--decimal ,"),
    (r"missing=\[[^\]]*\], or (--missing [^;]*) on the command line", r"\1"),
    (r"missing=\[\"([^\"]*)\"\]", _shell(r"--missing ", r"\1")),
    (r"say so with missing=", "say so with --missing"),
    (r"allow more with max_iter=, or accelerate=Squarem\(\)", "allow more with --max-iter"),
    (
        r"EmpiricalBayes chooses (\w+) for a whole graph.*",
        r"auto chooses \1 for one graph and complete rows: give a number, as in bdeu:10",
    ),
    (r"choose them first, by_evidence\(.*\), and give that prior", "use another here, as in bdeu:10"),
    (
        r"(LogisticNormal takes the covariance of .*): give it, or choose it first, by_evidence\(.*\)",
        r"\1: give it, as in NAME=logistic-normal/covariance=1,0.5;0.5,1",
    ),
    (r"give it, or choose it first, by_evidence\(.*\)", "give it, as in logistic-normal:1"),
    (r"give NormalInverseGamma\(\) or BGe\(\)", "use --prior nig or bge"),
    (r"give it Dirichlet\(1\), BDeu\(1\) or NormalInverseGamma\(\)", "use --prior bdeu:1+nig"),
    (r"give them Dirichlet\(1\) or BDeu\(1\)", "use --prior dirichlet:1 or bdeu:1"),
    (r"scan\(data, variables=\{('[^']*'): \[\.\.\.\], ('[^']*'): \[\.\.\.\]\}\)", _two_finite),
    (r"\bshared=", "--shared"),
    (r"give it, start=\.\.\.", "give it, --start MODEL"),
    (r"\bfixed=(?= )", "--fixed"),
    (r"\{'([^']*)': True\} is all of it", _shell(r"--fixed ", r"\1")),
    (r"(?:penalty=)?\bL([12])\(([\d.e-]+)\) \+ L([12])\(([\d.e-]+)\)", r"--penalty l\1:\2+l\3:\4"),
    (r"(?:penalty=)?\bL([12])\(([\d.e-]+)\)", r"--penalty l\1:\2"),
    (r"the strength of L([12]) is", r"the strength of --penalty l\1 is"),
    (r"prior=BDeu\((\d+)\) or prior=NormalInverseGamma\(\)", r"--prior bdeu:\1 or --prior nig"),
    (r"\bprior=BDeu\((\d+)\)", r"--prior bdeu:\1"),
    (r"GraphicalLasso(?:\(\))? is for", "--method glasso is for"),
    (r"\bNeighbourhoods\(\)", "--method neighbourhoods"),
    (r"without one, fit\(graph, data\) estimates a given graph", "suffice fit estimates a given graph without one"),
    (r"ContrastiveDivergence\(persistent=True\)", "--objective pcd:1"),
    (r"\bContrastiveDivergence\(\)", "--objective cd:1"),
    (r"\bPseudoLikelihood\(\)", "--objective pseudo"),
    (r"\bLikelihood\(\)", "--objective likelihood"),
    (r"; of a decomposable graph, net\.to_bayes_net\(\) is a Bayesian network", ""),
    (r"the threshold of StARS is", "--select stars:X: X is"),
    (r"the number of folds is", "--select cv:N: the number of folds is"),
    (r"the number of steps of contrastive divergence is", "--objective cd:N, pcd:N: N is"),
    (r"(?:give )?a smaller rate than ([\d.e+-]+)", r"a smaller rate than \1, which rbm(data, rate=...) in Python takes,"),
    (r"\btime_limit is", "--time-limit is"),
    (r"a penalty on weights or a prior that imagines rows, not both", "--penalty or --prior, not both"),
    (r"or of families=", "or of --family"),
    (r"families=\{'([^']*)': Logistic\(\)\}", _shell(r"--family ", r"\1=logistic")),
    (r"families=\{'([^']*)': PoissonLog\(\)\}", _shell(r"--family ", r"\1=poisson")),
    (r"families=\{'([^']*)': Logistic\(ridge=1\)\}", _shell(r"--family ", r"\1=logistic:1")),
    (r"families=\{'([^']*)': PoissonLog\(ridge=1\)\}", _shell(r"--family ", r"\1=poisson:1")),
    (r"families=\{'([^']*)': \w+\(ridge=1\)\}", _shell(r"--family ", r"\1=WORD:1")),
    (r"regressions \(families=\)", "regressions (--family)"),
    (r"use Orders\(\), Exact\(\), HillClimb\(\) or Tabu\(\)", "use --method orders, exact, hill-climb or tabu"),
    (r"families= (?=are for|need the rows)", "--family options "),
    (r"search with PoissonLog\(\), and", "search with --family NAME=poisson, and"),
    (r"families speaks of", "--family speaks of"),
    (r"Forbid\(\('([^']*)', '([^']*)'\)\)", _shell(r"--forbid ", r"\1 -> \2")),
    (r"em integrates numbers, for a graph that is given", "suffice fit integrates numbers, for a graph that is given"),
    (r"use \w+\(ridge=1\)", "use a ridge, as in --family NAME=WORD:1"),
    (r"variables= in scan declares them", "--count and --finite declare them"),
    (r"scan\(data, variables=\{'([^']*)': Finite\}\)", _shell(r"--finite ", r"\1")),
    (r"declare it, scan\(data, variables=\{'([^']*)': Count\('[^']*'\)\}\)", _shell(r"declare it, --count ", r"\1")),
    (
        r"draw the answer with query\(\.\.\., method=LikelihoodWeighting\(\)\)",
        "draw the answer with suffice query --method lw:10000",
    ),
    (r"give method=LikelihoodWeighting\(\) to predict or predict_proba, which then draw", "give --method lw:10000, to draw"),
    (r"query\((?:node|targets), \.\.\., method=LikelihoodWeighting\(\)\)(?:\.mode)?", "suffice query --method lw:10000"),
    (r"ask without interval=", "ask without --interval"),
    (r"draw it with query\(('[^']*'), \.\.\., method=LikelihoodWeighting\(\)\)", r"draw that of \1 with --method lw:10000"),
    (r"variables=\{'([^']*)': Bins\((\d+)\)\}", _shell(r"--bins ", r"\1=\2")),
    (r"variables=\{name: Bins\((\d+)\)\}", _shell(r"--bins ", r"NAME=\1")),
    (r"variables=\{'([^']*)': Real\}", _shell(r"--real ", r"\1")),
    (r"variables=\{'([^']*)': \[\.\.\.\]\}", _shell(r"--finite ", r"\1=a,b")),
    (r"variables=\[Finite\('([^']*)', \[\.\.\.\]\), \.\.\.\]", _shell(r"--finite ", r"\1=a,b")),
    (r"cut (it|'[^']*') (?:with|into) Bins\(\.\.\.\)", r"cut \1 with --bins NAME=5"),
    (r"(a prior such as|a prior,) NormalInverseGamma\(\)", r"\1 --prior nig"),
    (r"; after EM, em\(\.\.\.\)\.information\(\) has intervals of parameters, and query\(.*\) of answers", ""),
    (r"or a pickle without it, learned with .*", "without it; fit it with --information"),
    (r"missing_depends_on=? (names|does|is|has)", r"--missing-depends-on \1"),
    (r"are in missing_depends_on:", "are in --missing-depends-on:"),
    (r"; or leave redraw out", "; or leave --redraw out"),
    (r"\bredraw= is for draws=:", "--redraw is for --draws:"),
    (r"dry_run= is for complete rows", "--dry-run is for complete rows"),
    (r"; chain\.unroll\(n\) is a network of n steps", ""),
    (r"; of a decomposable graph, net\.to_bayes_net\(\) is a Bayesian network", ""),
    (r"leave decimal=',' out", "leave --decimal out"),
    (r"decimal=','", "--decimal ,"),
    (r"separator='(;|\||\\t|,)'", lambda found: f"--separator {NAMED[found[1]]}"),
    (r"encoding='([^']*)'", r"--encoding \1"),
    (r"separator, decimal and encoding are for", "--separator, --decimal and --encoding are for"),
)
"""Ways out as Python has them, and as the command line has them; the first that match come first."""


def in_options(message: str) -> str:
    """A message with its ways out in options of the command line, not in Python.

    >>> in_options("cut the parent into intervals: variables={'Wind': Bins(5)}")
    'cut the parent into intervals: --bins Wind=5'
    """
    for python, option in HINTS:
        message = re.sub(python, option, message)
    return message
