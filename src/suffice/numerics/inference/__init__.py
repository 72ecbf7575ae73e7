"""Inference: questions to numbered networks, arrays in and arrays out.

May use statistics and kernels; knows no names, families or models. Start with `finite/network`: factors over numbered
variables; then `finite/questions`, the exact way, `sampling`, the drawn one, and `chains`, steps of sequences.
"""
