"""The version of the package, below everything that says it."""

VERSION = "0.2.0"
