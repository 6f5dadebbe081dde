"""Read decoded files by their format, into documents of lines, records or labelled examples."""
