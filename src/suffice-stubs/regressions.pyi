from suffice.interfaces.topics.about_models.regressions import *
