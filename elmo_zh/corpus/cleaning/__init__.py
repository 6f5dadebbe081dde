"""Clean a corpus line by line before it is segmented: repair, remove markup, drop lines, and count."""
