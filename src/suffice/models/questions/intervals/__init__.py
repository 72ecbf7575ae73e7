"""Credible intervals of answers, by draws of the parameters.

It uses questions and evidence, and what families say of their posteriors. Start with `intervals`; `all_nodes` foretells what
those of all marginals cost, and finds them the cheaper way.
"""
