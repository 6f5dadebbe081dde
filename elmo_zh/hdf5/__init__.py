"""HDF5 files: created so that a full disk is no crash, read in another process if they may be a stranger's."""
