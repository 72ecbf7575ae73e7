"""Undirected models as values: terms, factors, features, covariances, and what is asked through a directed twin.

It uses inference. Start with `log_linear`.
"""
