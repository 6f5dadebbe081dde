"""Conversion of other programs' models into bundles."""
