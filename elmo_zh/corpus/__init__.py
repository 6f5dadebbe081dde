"""From files of any kind to lines of text: found, unpacked, decoded, read by format, cleaned."""
