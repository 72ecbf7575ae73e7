from suffice.interfaces.topics.undirected import *
