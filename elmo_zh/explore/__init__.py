"""A page for exploring words in context: maps of their occurrences, usages, neighbours and substitutes."""
