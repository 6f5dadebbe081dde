"""Where the tasks of the corpus stages run: in this process, in several, or on a cluster."""
