from suffice.interfaces.topics.about_learning.choices import *
