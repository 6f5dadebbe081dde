"""Train the biLM, and measure it."""
