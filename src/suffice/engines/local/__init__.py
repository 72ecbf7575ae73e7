"""The engine of rows on this machine, in memory or in a spill on disk.

It uses reading, encoding, views and steps. Start with `local`.
"""
