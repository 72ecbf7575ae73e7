from suffice.interfaces.topics.about_learning.results import *
