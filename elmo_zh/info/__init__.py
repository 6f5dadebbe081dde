"""Say what a folder is, what it was made from, its figures, and what to do next: `elmo-zh info`."""
