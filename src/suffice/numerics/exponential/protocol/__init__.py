"""What every distribution here can do, and the statistic that rows make for it.

It uses arithmetic. Start with `family`.
"""
