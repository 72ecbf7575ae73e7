"""What a search found, why, how sure it is, and what it will cost.

It uses the problem of search. Start with `found`.
"""
