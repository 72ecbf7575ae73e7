from suffice.interfaces.topics.information import *
