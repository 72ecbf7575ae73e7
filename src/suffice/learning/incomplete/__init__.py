"""Learning from incomplete rows: the task, checked; what cells are missing by (`mechanism`); the problem that iterations work on;
where they start; and ways up: the one loop of EM, coordinates without bounds, the observed information.

It uses incomplete rows and models. Start with `task`, then `problem`, then `climb`.
"""
