from suffice.interfaces.topics.scores import *
