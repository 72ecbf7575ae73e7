"""Numerics: arrays in, arrays out. Compiled loops, distributions with their conjugate priors, and exact or drawn answers.

They may use `statistics` and `basis`; they know no rows, families or models, and `exponential` and `inference` not each other.
Start with `kernels`, `exponential` or `inference`: each says where to go on.
"""
