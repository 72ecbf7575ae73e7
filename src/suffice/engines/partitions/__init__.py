"""Rows in other processes: what all engines share whose rows lie in partitions elsewhere, and what their workers do.

They use the protocol, encoders and readers. Start with `partitions`; `engines.spark` is such an engine.
"""
