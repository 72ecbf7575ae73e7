"""How requests come in: who may ask, and what a question has.

It may use the shelf. Start with `calls`.
"""
