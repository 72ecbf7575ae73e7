"""How the house is built: no file of the package imports, in however many steps, one that imports it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

SOURCE = Path(__file__).parents[2] / "src" / "suffice"

OPEN = [
    {
        "models.questions.answering",
        "models.questions.answers",
        "models.questions.approximate",
        "models.bayes_net",
        "models.questions.compiled",
        "models.questions.densities",
        "models.questions.distribution_parts",
        "models.estimates.divergence",
        "models.estimates.estimated",
        "models.questions.evidence",
        "models.estimates.expected",
        "models.undirected.factor",
        "models.undirected.features",
        "models.undirected.gibbs_rows",
        "models.undirected.goodness_of_fit",
        "models.questions.hybrid",
        "models.questions.intervals",
        "models.questions.intervene",
        "models.markov_net",
        "models.questions.mixture",
        "models.undirected.moral",
        "models.undirected.near",
        "models.estimates.parameter_covariance",
        "models.estimates.provenance",
        "models.questions.question",
        "models.estimates.redraw",
        "models.questions.regressions",
        "models.rows.impute",
        "models.rows.posteriors",
        "models.rows.predict",
        "models.rows.row_intervals",
        "models.estimates.sampling",
        "models.undirected.twin",
        "models.estimates.updated",
        "models.undirected.weight_errors",
    },
]
"""Cycles that are still there: nothing may join them, and each goes when its files are parted."""


def modules() -> dict[str, Path]:
    """The files of the package by what they are imported as, `suffice.` left out; a room's own file goes by the room's name."""
    return {".".join(p.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): p for p in SOURCE.rglob("*.py")}


def imported(file: Path) -> Iterator[str]:
    """All that a file imports of the package, wherever it says so: at its head, in functions, for type checkers only."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: imports name the whole way"
            yield from (node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def graph() -> nx.DiGraph:
    files = modules()
    named = {
        name: {m.removeprefix("suffice.") for m in imported(file) if m.startswith("suffice.")} for name, file in files.items()
    }
    return nx.DiGraph([(name, other) for name, others in named.items() for other in others & files.keys() - {name}])


def test_no_file_imports_what_imports_it() -> None:
    cycles = [part for part in nx.strongly_connected_components(graph()) if len(part) > 1]
    new = [sorted(part) for part in cycles if not any(part <= known for known in OPEN)]
    assert not new, f"files that import each other, in however many steps: {new}"


def test_imports_in_functions_and_for_type_checkers_count() -> None:
    edges = graph().edges
    assert ("models.chain", "models.chains.chain_answers") in edges  # in a method
    assert ("models.chain", "models.bayes_net") in edges  # for type checkers
    assert ("formats", "formats.registry") in edges  # a room's own file
    assert ("formats.xmlbif", "formats.xdsl") in edges  # import … as …
