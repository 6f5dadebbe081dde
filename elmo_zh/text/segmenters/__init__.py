"""Segmenters: from a normalised sentence to its tokens."""
