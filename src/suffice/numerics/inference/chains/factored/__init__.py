"""Hidden states that are many variables, passed on factor by factor.

It uses the steps of chains. Start with `factored`.
"""
