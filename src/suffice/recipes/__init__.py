"""Recipes: whole jobs made of searches, fits and questions, one or two files for each, with what the job returns.

May use learning, structure and all below them. Rows are read through engines only, by steps that add.
Start with `learn`, the shortest; then `structural_em`, `mixture` and `hmm`.
"""
