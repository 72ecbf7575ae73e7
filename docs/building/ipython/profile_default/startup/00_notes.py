"""Notes of the library are shown as sentences, without the file and line of a temporary cell."""

import warnings


def _sentence(message, category, filename, lineno, line=None):
    return f"{category.__name__}: {message}\n"


warnings.formatwarning = _sentence
