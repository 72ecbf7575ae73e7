"""Searches for graphs: orders, subsets, greedy changes, tests of independence, walks over orders.

It uses counting. Start with `orders`.
"""
