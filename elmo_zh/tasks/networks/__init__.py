"""The networks of tasks, one file each, on the vectors of a bundle."""
