from suffice.interfaces.topics.about_learning.methods import *
