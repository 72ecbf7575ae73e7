from suffice.interfaces.topics.about_models.plates import *
