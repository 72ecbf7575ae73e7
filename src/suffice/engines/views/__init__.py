"""Views of rows: each block changed on its way to a step, and copied nowhere. Redrawn, parted, selected; and rows that are drawn.

They use the protocol only. Start with `views`.
"""
