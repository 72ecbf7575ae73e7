"""Coordinates that no bounds hold for the parameters of one node, and derivatives by them from statistics alone.

It may use: families. Start reading in `plain`, the charts of tables and Gaussians; `regression` has those of regressions, `kinds`
says which chart a distribution has.
"""
