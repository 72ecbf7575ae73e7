from suffice.interfaces.estimators import *
