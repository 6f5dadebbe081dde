"""Readers for each format of corpora and labelled data."""
