"""Read a corpus: find files, unpack and decode them, read their format, clean their lines."""
