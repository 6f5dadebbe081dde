"""From a raw line of text to sentences and tokens."""
