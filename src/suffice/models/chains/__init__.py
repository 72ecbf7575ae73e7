"""Chains of sequences: their parts, how sequences are read, filters, forecasts, draws.

It uses incomplete rows and inference. Start with `chain_parts`.
"""
