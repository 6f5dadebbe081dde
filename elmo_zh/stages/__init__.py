"""The stages of a run, from raw text to a bundle, one file for each command."""
