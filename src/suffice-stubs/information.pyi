from suffice.interfaces.topics.about_learning.information import *
