"""Digits: special functions, cumulants, symmetric matrices, and parameters checked at the door.

Start with `values`.
"""
