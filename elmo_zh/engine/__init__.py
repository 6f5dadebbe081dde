"""Engines that run the tasks of the corpus stages: this process, worker processes, or a Dask cluster."""
