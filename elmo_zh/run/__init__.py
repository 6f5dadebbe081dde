"""The run folder: its layout, the records of its stages, atomic files and progress reporting."""
