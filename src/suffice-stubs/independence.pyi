from suffice.interfaces.topics.independence import *
