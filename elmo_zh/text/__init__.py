"""Turn a raw line of text into sentences and tokens."""
