"""Read decoded files by their format, into lines, records or labelled examples."""
