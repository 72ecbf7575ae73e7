"""Graphs: `Dag`, `Cpdag`, `Graph` and the `Template` of sequences, what one asks of them, and how two of them compare.

May use errors and pictures. Start with `directed`, then `text`, how graphs are written, and `paths`, what is asked of them.
"""

from suffice.graphs.comparison import Comparison, compare, n_dags, shd
from suffice.graphs.directed import Cpdag, Dag
from suffice.graphs.lagged import lag
from suffice.graphs.template import Template
from suffice.graphs.undirected import Graph

__all__ = ["Comparison", "Cpdag", "Dag", "Graph", "Template", "compare", "lag", "n_dags", "shd"]
