"""Read a corpus: find files, unpack and decode them, parse their format, and clean their lines."""
