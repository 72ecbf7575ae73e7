"""Runs that survive a kill: the journal of a run, and what it is a run of.

It uses engines and statistics. Start with `journal`.
"""
