from suffice.basis.registry import *
