"""Engines whose rows lie in other processes: what they share, the pieces of files that workers read, blocks that they keep.

It uses reading, encoding, views and steps. Start with `partitions`; `suffice.engines.spark` is one of them.
"""
