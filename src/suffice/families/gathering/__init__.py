"""From a graph to the statistics that its families need, and to those of every family with up to so many parents.

It uses engines. Start with `gathering`.
"""
