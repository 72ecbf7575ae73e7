"""Sequences: filters, smoothers, best paths and draws over steps; arrays in, arrays out.

`finite` has states (`lanes` and `blocks` are its fast ways), `factored` states of many variables, `gaussian` numbers. They know
no models, and use only kernels.
"""
