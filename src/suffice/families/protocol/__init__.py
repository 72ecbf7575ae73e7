"""What a family of conditional distributions and a fitted distribution (`Cpd`) must be able to do.

It uses statistics and inference. Start with `family`, then `cpd`.
"""
