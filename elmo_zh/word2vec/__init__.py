"""Initial token embeddings: trained on the run's text by gensim or by our own code, or read from a file."""
