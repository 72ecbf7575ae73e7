from suffice.interfaces.topics.regressions import *
