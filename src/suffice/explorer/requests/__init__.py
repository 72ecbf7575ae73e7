"""How requests come in: who may ask, what a question has, files that are sent, and what is refused by which number.

It may use the shelf. Start with `calls`.
"""
