"""What a run holds, read from its records and its segmented text; memory does not grow with the text."""
