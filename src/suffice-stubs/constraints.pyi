from suffice.interfaces.topics.constraints import *
