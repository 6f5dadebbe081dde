"""Count words, select the vocabulary, and look up the ids and spellings of words."""
