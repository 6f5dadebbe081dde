"""The words of a text: counted, chosen for the vocabulary, numbered and spelled."""
