"""Learning from incomplete rows: the task, checked; the problem that iterations work on; where they start.

It uses incomplete rows and models. Start with `task`, then `problem`.
"""
