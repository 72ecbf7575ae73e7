"""Methods that find undirected graphs: the graphical lasso, neighbourhoods, decomposable graphs.

It uses scoring, methods and results. Start with `graph_method`.
"""
