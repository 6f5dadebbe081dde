"""A page for exploring the occurrences of words."""
