"""From a graph to the statistics that its families need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suffice.blas import one_blas_thread
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, nearest
from suffice.families import family_of
from suffice.graphs import Dag
from suffice.statistics import Request, Statistics
from suffice.variables import Variable


def requests(dag: Dag, variables: Mapping[str, Variable]) -> list[Request]:
    """What each node of the graph needs, in the order of the nodes."""
    return [
        family_of(variables[node], parents := [variables[p] for p in dag.parents(node)]).needs(variables[node], parents)
        for node in dag.nodes
    ]


@one_blas_thread
def gather(data: Any, dag: Any) -> Statistics:
    """All that the families of `dag` need to know about `data`, in one scan; it adds to what other data gives.

    >>> s = gather({"x": ["a", "b", "a"], "y": ["u", "u", "v"]}, "x -> y")
    >>> s.counts(["x", "y"]).values
    array([[1., 1.],
           [1., 0.]])
    """
    if isinstance(data, Statistics):
        return data
    graph = Dag(dag)
    rows = scan(data)
    for node in graph.nodes:
        if node not in rows.columns:
            raise DataError(
                f"the data has no column {node!r}, which the graph names{nearest(node, rows.columns)}; if no row shows it, "
                f"declare its states: em(dag, data, hidden=[Finite({node!r}, [...])]), or --hidden {node}=a,b"
            )
    rows = rows.select(graph.nodes)
    try:
        wanted = requests(graph, rows.schema)
    except FitError:
        rows.require_complete(graph.nodes)  # a column without values has no type: that is the reason to give
        raise
    return rows.gather(wanted)
