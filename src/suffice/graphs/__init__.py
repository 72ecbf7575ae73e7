"""Graphs: `Dag`, `Cpdag` and `Graph`, what one asks of them, and how two of them compare."""

from suffice.graphs.comparison import Comparison
from suffice.graphs.directed import Cpdag, Dag, compare, n_dags, shd
from suffice.graphs.undirected import Graph

__all__ = ["Comparison", "Cpdag", "Dag", "Graph", "compare", "n_dags", "shd"]
