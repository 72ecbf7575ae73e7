"""Hidden classes, states and numbers, and how many of them: mixtures, hidden Markov models, factors. Start with `mixture`."""
