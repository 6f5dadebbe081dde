"""Training the biLM, and measuring it."""
