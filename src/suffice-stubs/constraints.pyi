from suffice.interfaces.topics.about_learning.constraints import *
