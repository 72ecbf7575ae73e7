"""The networks that come with the package. NOTICE names their authors and licence."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from suffice.errors import FormatError, SufficeNote, nearest
from suffice.formats.registry import read

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

NAMES = ("alarm", "asia", "cancer", "earthquake", "hailfinder", "insurance", "sachs", "survey")


@cache
def load(name: str) -> BayesNet:
    """A network of the Bayesian network repository that comes with the package.

    >>> load("asia").dag.parents("either")
    ('lung', 'tub')
    """
    if name not in NAMES:
        raise FormatError(f"there is no bundled network {name!r}{nearest(str(name), NAMES)}; there are {', '.join(NAMES)}")
    with resources.as_file(resources.files("suffice") / "bundled" / f"{name}.bif.gz") as path, warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)
        return read(path)
