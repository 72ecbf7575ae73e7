"""Methods that find directed graphs, one file each, and what they are made of.

They see local scores and rules, never data. Start with `orders`.
"""
