"""Regressions over rows, lassos, sparse precisions, and the units of undirected models.

Start with `regression`.
"""
