"""An output that does not fit on its disk is named, with the space that it needs."""

import errno
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from messages import message_of

from elmo_zh.errors import FullDiskError, OutputError
from elmo_zh.run.files import atomic_path, require_disk_space


def shrink_disk(monkeypatch: pytest.MonkeyPatch, *, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=100_000, free=free))


def fill(path: Path, num_bytes: int, number: int = errno.ENOSPC) -> None:
    path.write_bytes(b"a" * num_bytes)
    raise OSError(number, "as the system says it")


def test_what_did_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "ids"
    for number in (errno.ENOSPC, errno.EDQUOT):
        with pytest.raises(FullDiskError) as caught, atomic_path(path) as unfinished:
            fill(unfinished, 1301, number)
        assert f"{path} (1.3 kB): the disk is full." in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_output_that_cannot_fit_is_refused_before_it_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink_disk(monkeypatch, free=10**9)
    output = tmp_path / "not there yet" / "out"
    advice = "--layers top"
    require_disk_space(output, 9e8, advice=advice)
    told = message_of(OutputError, lambda: require_disk_space(output, 1.1e9, advice=advice))
    assert told.startswith(f"{output} needs 1.1 GB of disk space, but only 1.0 GB is free.")
    assert advice in told
