"""Sequences: filters, smoothers, best paths and draws over steps; arrays in, arrays out.

`finite` has states (`lanes` are its fast way), `factored` states of many variables, `gaussian` numbers. They know
no models, and use only kernels.
"""
