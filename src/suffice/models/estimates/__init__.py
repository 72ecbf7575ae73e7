"""How a network came about and what it implies: estimates, updates, ties, what it expects, draws of rows and of parameters.

It uses families. Start with `estimated`.
"""
