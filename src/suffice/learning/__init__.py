"""Learning: from a graph and data to its parameters, by counts, by EM or by gradients.

May use models and all below them; asks engines for sums over rows, and `incomplete` for what missing cells are expected to be.
Start with `fit`; then `em`, which iterates (`climb`) over a `problem`.
"""
