from suffice.interfaces.topics.choices import *
