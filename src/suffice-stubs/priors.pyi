from suffice.interfaces.topics.about_models.priors import *
