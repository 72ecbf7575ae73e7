"""Chains of labels given all else (CRFs): scores, expectations, best labels, updates after each sequence.

It uses chains. Start with `crf`.
"""
