from suffice.interfaces.topics.priors import *
