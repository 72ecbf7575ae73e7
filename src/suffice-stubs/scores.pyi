from suffice.interfaces.topics.about_learning.scores import *
