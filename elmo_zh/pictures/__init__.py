"""Pictures of runs and results, drawn with matplotlib."""
