"""Other programs' models become bundles."""
