"""Engines, which run the tasks of the corpus stages in this process, in worker processes or on a Dask cluster."""
