"""The segment stage: a corpus becomes segmented sentences, in tasks that any worker can run."""
