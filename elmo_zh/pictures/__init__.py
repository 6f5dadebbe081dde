"""Pictures of runs and results, drawn with matplotlib if it is installed."""
