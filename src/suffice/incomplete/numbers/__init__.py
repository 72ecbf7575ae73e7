"""Missing cells among numbers: patterns, joint normals, rows completed in every way, points of quadrature.

It uses `components`. Start with `patterns`, then `mixed`.
"""
