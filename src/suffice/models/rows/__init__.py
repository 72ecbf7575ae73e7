"""Rows of a finished network: rows in, rows out. Any of their cells may be missing.

Each row is answered for itself, whatever it shows, by a step that an engine maps over blocks of rows:

    posteriors     the one service: what rows show of a network's variables, p(target | row) and ln p(row), by whichever inference
                   the rows need; ln p of what is observed
    predict        the posterior of a target; by likelihood weighting, where there is no formula
    impute         the missing cells filled in: the most probable states, or draws of all together
    frames         answers in the kind of frame that came
"""
