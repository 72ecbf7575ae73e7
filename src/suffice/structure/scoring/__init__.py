"""Local scores, (child, parents) → score, and where they come from: bitmaps, moments, tables, regressions.

It uses engines, families and scores. Start with `local_scores`.
"""
