"""What tests of engines share."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from engine.dask_cluster import IMPORTED, Cluster, started, wait_for_address


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        arguments = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        process = stack.enter_context(started(folder, arguments, IMPORTED))
        yield Cluster(folder, wait_for_address(folder / "scheduler.log", process), stack)


@pytest.fixture
def two_workers(cluster: Cluster) -> Cluster:
    """The cluster, with two workers that live."""
    cluster.workers[:] = [worker for worker in cluster.workers if worker.poll() is None]
    while len(cluster.workers) < 2:
        cluster.start_worker()
    return cluster
