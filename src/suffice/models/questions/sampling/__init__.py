"""Answers by draws from a network, with their errors.

It uses questions and evidence, and `inference.sampling`. Start with `approximate`.
"""
