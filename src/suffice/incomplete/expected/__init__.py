"""The statistics that incomplete rows are expected to have, for any family.

It uses numbers and finite components. Start with `expectations`.
"""
