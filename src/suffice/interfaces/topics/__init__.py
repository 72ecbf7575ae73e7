"""The public modules by topic, `suffice.priors`, `suffice.methods` and so on: the package finds them here (`suffice.__path__`).

Each lists the public names of one topic and where they are made; nothing is written here. Rooms that are topics as a whole stand
here, the others in `about_models` and `about_learning`. Start with the topic you look for.
"""
