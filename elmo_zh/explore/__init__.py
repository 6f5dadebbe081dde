"""A page for exploring words in context: usages, neighbours, surprisal, substitutes, and maps of occurrences."""
