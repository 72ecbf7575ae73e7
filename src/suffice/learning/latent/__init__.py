"""Mixtures and factors: a hidden class or hidden numbers of every row.

It uses the problem of incomplete rows and ascent. Start with `mixture_setup`.
"""
