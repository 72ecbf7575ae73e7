"""Normal distributions and their conjugate priors.

It uses the protocol. Start with `normal`.
"""
