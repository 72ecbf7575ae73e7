from suffice.interfaces.reports import *
