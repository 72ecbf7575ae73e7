"""Suffice's own JSON, which keeps everything; a file for each kind of model.

It uses models and families. Start with `model`.
"""
