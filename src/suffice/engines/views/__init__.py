"""Views of rows: each block changed on its way to a step, and copied nowhere. Redrawn, parted, selected; and rows that
are drawn, by which numbers are cut into bins.

They use the protocol and the schema. Start with `views`.
"""
