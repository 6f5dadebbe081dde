"""Counting words, selecting the vocabulary, and the ids and spellings of words."""
