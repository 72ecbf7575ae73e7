from suffice.interfaces.topics.methods import *
