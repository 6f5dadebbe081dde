"""From files of any kind to documents of lines: found, unpacked, decoded, then read by the reader of their format."""
