"""Rows in this process: blocks from memory or files, dealt out to threads; encoded columns that are kept, in memory or in a file.

It uses the protocol, encoders and readers. Start with `local`.
"""
