from suffice.interfaces.topics.about_learning.limits import *
