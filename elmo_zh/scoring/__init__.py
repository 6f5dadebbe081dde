"""Exact costs and perplexities of text under a trained model."""
