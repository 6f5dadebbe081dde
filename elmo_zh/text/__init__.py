"""From raw text to sentences and tokens."""
