"""Describe a folder for `elmo-zh info`: its kind, its origin, its figures and, for most kinds, the next step."""
