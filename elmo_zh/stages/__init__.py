"""The stages of a run, from raw text to a bundle, and the settings with which they run."""
