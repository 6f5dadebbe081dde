"""The bidirectional language model. Opens no file and logs nothing."""
