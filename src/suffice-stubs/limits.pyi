from suffice.interfaces.topics.limits import *
