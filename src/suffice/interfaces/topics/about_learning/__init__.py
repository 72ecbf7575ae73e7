"""Public modules about learning: methods, scores, tests, constraints and limits, and what calls return.

Each may use every room, and has imports only. Start with `methods`.
"""
