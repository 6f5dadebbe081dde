"""Train the biLM, and measure how well it predicts held-out text."""
