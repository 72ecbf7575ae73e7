"""Estimates of undirected models, all of them by *seen − expected*.

What is here may use models, inference and engines. `fit.py` is where `suffice.fit` comes in; `problem.py` is what an objective is
given (`models/undirected/factor.py` says what weights are); the rest is one way to an estimate each.
"""
