"""The same rows seen otherwise: redrawn, parted, sampled, with indicators of missing cells. Nothing is copied.

It uses the protocol of engines. Start with `views`.
"""
