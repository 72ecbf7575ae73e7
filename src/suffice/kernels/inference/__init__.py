"""Exact inference: orders of elimination, trees of products, messages, buckets of missing variables; Gibbs sampling and IPF.

Start with `contract`, the one operation, then `messages`.
"""
