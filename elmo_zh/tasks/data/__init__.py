"""Labelled data: read from tables, JSON lines and CoNLL, checked, and split."""
