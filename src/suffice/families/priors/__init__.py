"""Priors of the parameters of a node: each imagines a statistic. What users may write for one is read in `priors`.

It uses the protocol and chosen distributions. Start with `priors`.
"""
