"""The public modules by topic, `suffice.priors`, `suffice.methods` and so on: the package finds them here (`suffice.__path__`).

Each lists the public names of one topic and where they are made; nothing is written here. Start with the topic you look for.
"""
