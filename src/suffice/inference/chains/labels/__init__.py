"""Labels in a row given all else.

It uses finite chains. Start with `conditional`.
"""
