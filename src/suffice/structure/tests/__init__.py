"""Tests of conditional independence, one at a time or very many.

It uses scoring. Start with `independence`.
"""
