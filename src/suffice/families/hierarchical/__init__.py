"""Priors whose numbers are learned across rows or groups: hierarchical Dirichlets, logistic-normal effects, random effects.

It uses priors and Gaussians. Start with `hierarchical`.
"""
