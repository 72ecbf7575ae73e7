from suffice.interfaces.topics.about_models.undirected import *
