"""How a network comes about: estimated from statistics, updated by more rows, at draws of its parameters.

It uses families and the parts of networks. Start with `estimated`.
"""
