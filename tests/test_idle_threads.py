"""What OpenMP is told before torch is there."""

from pathlib import Path

import pytest
from contract.command_line import run_python

from elmo_zh.allocator import let_idle_threads_sleep


def test_threads_are_told_once() -> None:
    environment: dict[str, str] = {"PATH": "/bin"}
    let_idle_threads_sleep(environment)
    assert environment == {"PATH": "/bin", "GOMP_SPINCOUNT": "20000"}


@pytest.mark.parametrize("name", ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY"])
def test_what_the_user_has_set_stays(name: str) -> None:
    environment = {name: "active"}
    let_idle_threads_sleep(environment)
    assert environment == {name: "active"}


def test_the_command_line_says_it_before_torch_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    script = (
        "import os, sys, elmo_zh.cli as cli; cli.cli.main = lambda **_: print('torch' in sys.modules,"
        " os.environ['GOMP_SPINCOUNT']); cli.main()"
    )
    assert run_python("-c", script, cwd=tmp_path).stdout.split() == ["False", "20000"]
