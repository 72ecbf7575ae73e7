"""Labels in a row: linear chains (CRFs), what their windows look at, which labels may follow which."""

from suffice.engines.reading.conll import read_conll
from suffice.models.crf import Crf
from suffice.models.linear_chain.transitions import BIO, BIOES, Transitions
from suffice.models.linear_chain.windows import Derived, LinearChain, Lower, Prefix, Shape, Suffix, Window

__all__ = [
    "BIO", "BIOES", "Crf", "Derived", "LinearChain", "Lower", "Prefix", "Shape", "Suffix", "Transitions", "Window",
    "read_conll",
]  # fmt: skip
