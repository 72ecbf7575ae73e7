"""Ways out of errors and notes: as Python has them, and as the command line has them."""

from __future__ import annotations

import re
from collections.abc import Callable

NAMED = {";": "semicolon", "|": "bar", "\\t": "tab", ",": "comma"}
"""Words for separators, which a shell may take for something else."""

HINTS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"hidden=\[Finite\('[^']*', \[\.\.\.\]\)\] or \[Real\('([^']*)'\)\], or (--hidden [^ ]+=3)", r"\2, or --hidden \1=real"),
    (r"say order=,", "say --order,"),
    (r"\bgiven= ", "--given "),
    (r"(?:em\(dag, data, )?hidden=\[Finite\('([^']*)', \[[^\]]*\]\)\]\)?(?:, or --hidden [^ ]+=a,b)?", r"--hidden \1=a,b"),
    (r"leave it out of hidden=", "leave it out of --hidden"),
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
    (r"integers=Finite or variables=, or --finite on the command line", "--integers finite, or --finite NAME"),
    (r"integers=Finite", "--integers finite"),
    (r"missing=\[[^\]]*\], or (--missing [^;]*) on the command line", r"\1"),
    (r"missing=\[\"([^\"]*)\"\]", r"--missing \1"),
    (r"say so with missing=", "say so with --missing"),
    (r"allow more with max_iter=, or accelerate=Squarem\(\)", "allow more with --max-iter"),
    (
        r"EmpiricalBayes chooses (\w+) for a whole graph.*",
        r"auto chooses \1 for one graph and complete rows: give a number, as in bdeu:10",
    ),
    (r"choose them first, by_evidence\(.*\), and give that prior", "use another here, as in bdeu:10"),
    (r"give it, or choose it first, by_evidence\(.*\)", "give it, as in logistic-normal:1"),
    (r"give them Dirichlet\(1\) or BDeu\(1\)", "use --prior dirichlet:1 or bdeu:1"),
    (r"scan\(data, variables=\{'([^']*)': \[\.\.\.\], '([^']*)': \[\.\.\.\]\}\)", r"--finite \1=a,b --finite \2=a,b"),
    (r"\bshared=", "--shared"),
    (r"or of families=", "or of --family"),
    (r"families=\{'([^']*)': Logistic\(\)\}", r"--family \1=logistic"),
    (r"families=\{'([^']*)': PoissonLog\(\)\}", r"--family \1=poisson"),
    (r"use \w+\(ridge=1\)", "use a ridge, as in --family NAME=WORD:1"),
    (r"variables= in scan declares them", "--count and --finite declare them"),
    (r"scan\(data, variables=\{'([^']*)': Finite\}\)", r"--finite \1"),
    (r"declare it, scan\(data, variables=\{'([^']*)': Count\('[^']*'\)\}\)", r"declare it, --count \1"),
    (
        r"draw the answer with query\(\.\.\., method=LikelihoodWeighting\(\)\)",
        "draw the answer with suffice query --method lw:10000",
    ),
    (r"give method=LikelihoodWeighting\(\) to predict or predict_proba, which then draw", "give --method lw:10000, to draw"),
    (r"query\((?:node|targets), \.\.\., method=LikelihoodWeighting\(\)\)(?:\.mode)?", "suffice query --method lw:10000"),
    (r"ask without interval=", "ask without --interval"),
    (r"draw it with query\(('[^']*'), \.\.\., method=LikelihoodWeighting\(\)\)", r"draw that of \1 with --method lw:10000"),
    (r"variables=\{'([^']*)': Bins\((\d+)\)\}", r"--bins \1=\2"),
    (r"variables=\{name: Bins\((\d+)\)\}", r"--bins NAME=\1"),
    (r"variables=\{'([^']*)': Real\}", r"--real \1"),
    (r"variables=\{'([^']*)': \[\.\.\.\]\}", r"--finite \1=a,b"),
    (r"variables=\[Finite\('([^']*)', \[\.\.\.\]\), \.\.\.\]", r"--finite \1=a,b"),
    (r"cut (it|'[^']*') (?:with|into) Bins\(\.\.\.\)", r"cut \1 with --bins NAME=5"),
    (r"prior=BDeu\((\d+)\) or prior=NormalInverseGamma\(\)", r"--prior bdeu:\1 or --prior nig"),
    (r"(a prior such as|a prior,) NormalInverseGamma\(\)", r"\1 --prior nig"),
    (r"; after EM, em\(\.\.\.\)\.information\(\) has intervals from the observed information", ""),
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
