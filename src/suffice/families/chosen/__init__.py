"""Nodes of any distribution of `suffice.exponential`, by finite parents.

It uses the protocol. Start with `exponential_node`; `node_kinds` says what is particular to each distribution.
"""
