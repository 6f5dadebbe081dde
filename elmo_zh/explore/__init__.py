"""A page on which the occurrences of words can be looked at."""
