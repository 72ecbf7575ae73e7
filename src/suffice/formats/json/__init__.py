"""Suffice's own JSON, which keeps everything; a file for kinds of models that are alike.

It uses models and families. Start with `model`.
"""
