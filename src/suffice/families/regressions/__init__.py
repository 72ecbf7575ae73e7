"""Generalised linear models: families, their one distribution, passes over rows, many fits at once.

It uses the protocol, tables and Gaussians. Start with `glm`.
"""
