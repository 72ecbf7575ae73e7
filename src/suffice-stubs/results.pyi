from suffice.interfaces.topics.results import *
