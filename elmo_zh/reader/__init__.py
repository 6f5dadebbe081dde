"""Reads sentences with a trained biLM, in float32 and with NumPy alone. docs/reader.md explains how."""
