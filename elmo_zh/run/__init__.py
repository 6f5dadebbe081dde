"""Runs and other outputs: layout, records of stages, jobs, atomic files, and progress reporting."""
