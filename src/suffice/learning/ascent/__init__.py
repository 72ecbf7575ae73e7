"""Ways up: the one loop of EM, its cost foretold, coordinates without bounds, the observed information.

It uses the problem of incomplete rows. Start with `climb`.
"""
