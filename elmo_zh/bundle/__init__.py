"""The model bundle: a self-contained folder that this and other programs read."""
