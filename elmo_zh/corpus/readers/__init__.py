"""Readers for the formats of corpora and labelled data."""
