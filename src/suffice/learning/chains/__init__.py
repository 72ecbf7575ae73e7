"""Learning from sequences: the task, checked; the problem of EM; how sequences begin.

It uses the problem of incomplete rows. Start with `chain_task`.
"""
