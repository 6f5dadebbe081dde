"""Pictures of a run, drawn with matplotlib if it is installed."""
