"""What mixtures and factor analysis have of their own: parts of a class, starts, and EM for factors.

It uses `incomplete` and the climb of `learning.incomplete`. Start with `mixture_setup`.
"""
