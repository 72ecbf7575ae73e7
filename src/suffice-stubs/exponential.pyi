from suffice.numerics.exponential import *
