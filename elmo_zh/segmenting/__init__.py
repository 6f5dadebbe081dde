"""The segment stage: it turns a corpus into segmented sentences, in tasks that any worker can run."""
