"""The commands: what each reads from its options, the one call of the library that it is, and what it writes and prints.

They may use words, inputs, kinds and answers beside this folder, not each other. Start reading at `fit.py`.
"""
