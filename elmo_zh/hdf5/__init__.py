"""Create HDF5 files so that a full disk is no crash; read those that may be a stranger's in another process."""
