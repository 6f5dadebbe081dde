"""The steps of the segment stage, each in tasks that any worker can do."""
