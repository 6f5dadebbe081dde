"""Describe a run from its records and its segmented text; memory does not grow with the text."""
