from suffice.interfaces.topics.labels import *
