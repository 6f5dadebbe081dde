"""Create HDF5 files without crashing on a full disk, and read untrusted ones in another process."""
