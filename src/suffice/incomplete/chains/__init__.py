"""Sequences with unknown cells: joint states, factors, hidden numbers, one step after the other.

It uses `components`, numbers and inference. Start with `hidden_chains`.
"""
