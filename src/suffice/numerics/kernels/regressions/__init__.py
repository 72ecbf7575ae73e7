"""Regressions over rows, and what fits of undirected models iterate. Start with `regression`."""
