"""Learning the weights of linear chains of labels from sequences, under one principle or another.

It may use what `learning` may. Start with `fit`, which has conditional likelihood, too, then `problem`: sequences encoded once,
and what weights expect of them; `margin` has the principles that take one sequence after the other.
"""
