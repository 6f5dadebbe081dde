"""What is decided line by line of a corpus before it is segmented: repaired, freed of markup, dropped, and counted."""
