from suffice.interfaces.topics.chains import *
