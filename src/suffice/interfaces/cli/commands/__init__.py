"""The commands: what each reads from its options, the one call of the library that it is, and what it writes and prints.

They may use what stands beside this folder, words, inputs, models and the rest, not each other. Start reading at `fit.py`.
"""
