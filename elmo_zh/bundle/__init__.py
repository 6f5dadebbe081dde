"""The model bundle: a self-contained folder that this program and others can read."""
