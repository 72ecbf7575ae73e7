"""Rows that follow each other: keys, arrangement, gaps, lagged rows, on every engine.

It uses all other rooms of engines. Start with `sequences`.
"""
