from suffice.interfaces.topics.about_models.labels import *
