"""Learning the weights of linear chains of labels from sequences, under one principle or another.

It may use what `learning` may. Start with `fit`, then `problem`: sequences encoded once, and what weights expect of them;
`conditional`, `perceptron` and `margin` are one file for each principle.
"""
