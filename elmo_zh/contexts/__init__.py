"""Words in context: scores, substitutes, and indexes of occurrences."""
