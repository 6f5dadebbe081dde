"""The starter model of elmo-zh: a bundle, and where it is."""

from pathlib import Path

FOLDER = Path(__file__).parent / "model"
"""Folder of the bundle."""
