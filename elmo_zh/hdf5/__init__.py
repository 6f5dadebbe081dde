"""Create HDF5 files without crashing on a full disk; read untrusted ones in another process."""
