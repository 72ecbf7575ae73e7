"""Methods that find undirected graphs: the graphical lasso, neighbourhoods, decomposable graphs, hierarchical log-linear models.

A method is a frozen value of options, a `GraphMethod` (start reading there), whose `run` takes a `Problem` and gives a
`GraphOutcome`. What a method needs of the rows it asks for as statistics: moments or tables. `selection` holds what a penalty
is chosen by.
"""
