"""Compute the vectors of texts with a bundle."""
