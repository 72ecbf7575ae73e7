"""Learning from complete rows, where one statistic is not all: regressions by IRLS, LMS, plates, complete chains.

It uses families and models. Start with `irls`.
"""
