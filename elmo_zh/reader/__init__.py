"""Reads sentences with a trained biLM in NumPy, without PyTorch. docs/reader.md explains how."""
