"""Rows of a finished network: rows in, rows out. Any of their cells may be missing.

Each row is answered for itself, whatever it shows, by a step that an engine maps over blocks of rows:

    evidence       what a block of rows shows of a network's variables
    posteriors     the one service: p(target | row) and ln p(row), by whichever inference the rows need
    direct         where nothing else is to be summed out        regressions   beside regressions on numbers
    draws          by likelihood weighting, where there is no formula
    completions    the missing cells filled in: the most probable states, or draws of all together
    predict, impute, log_prob                                     what is asked of rows
    frames, filling                                               answers in the kind of frame that came
"""
