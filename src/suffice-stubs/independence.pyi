from suffice.interfaces.topics.about_learning.independence import *
