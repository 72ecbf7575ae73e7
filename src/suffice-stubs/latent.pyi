from suffice.interfaces.topics.about_models.latent import *
