from suffice.interfaces.topics.plates import *
