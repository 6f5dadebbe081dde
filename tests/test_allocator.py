"""OpenMP settings: made before torch starts its threads, and never over the user's own."""

import os
from pathlib import Path

import pytest
from contract.command_line import run_python

from elmo_zh.allocator import let_idle_threads_sleep

SETTINGS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_of_the_user_is_kept(name: str) -> None:
    environment = {name: "active"}
    let_idle_threads_sleep(environment)
    assert environment == {name: "active"}


def test_every_command_limits_spinning_before_torch_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenMP reads its settings once, when torch loads it."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    script = (
        "import os, sys, elmo_zh.cli as cli; before = dict(os.environ);"
        " cli.cli.main = lambda **_: print('torch' in sys.modules, sorted(set(os.environ) - set(before)));"
        " cli.main()"
    )
    answer = run_python("-c", script, cwd=tmp_path)
    assert answer.stdout.startswith("False"), answer
    assert "'GOMP_SPINCOUNT'" in answer.stdout
    assert "GOMP_SPINCOUNT" not in os.environ
