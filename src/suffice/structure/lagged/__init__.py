"""Searches over sequences: lagged steps as columns, and the first steps apart.

It uses constraints and results. Start with `windows`.
"""
