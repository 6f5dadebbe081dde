"""Train the initial token embeddings on the run's text, with gensim or our own code, or read them from a file."""
