from suffice.interfaces.topics.about_models.chains import *
