"""Graphs: `Dag`, `Cpdag` and `Graph`, what one asks of them, and how two of them compare."""

from suffice.graphs.comparison import Comparison, compare, n_dags, shd
from suffice.graphs.directed import Cpdag, Dag, Graph

__all__ = ["Comparison", "Cpdag", "Dag", "Graph", "compare", "n_dags", "shd"]
