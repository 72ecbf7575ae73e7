from suffice.interfaces.topics.latent import *
