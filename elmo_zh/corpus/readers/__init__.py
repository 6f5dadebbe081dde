"""From files of any kind to documents of lines: find, unpack and decode them, then read them by format."""
