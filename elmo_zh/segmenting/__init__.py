"""The segment stage, which turns a corpus into segmented training text and held-out text."""
