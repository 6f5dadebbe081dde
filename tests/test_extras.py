"""The command that installs an extra, as printed in every message that names one."""

import importlib
import importlib.metadata
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from messages import message_of

from elmo_zh import invocation
from elmo_zh.config import TextConfig
from elmo_zh.errors import ElmoZhError
from elmo_zh.invocation import install_line
from elmo_zh.text.normalise import build_normaliser
from elmo_zh.text.script import describe_script
from elmo_zh.text.segmenters import build_segmenter, describe_segmenter


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with its .venv, whose Python runs; the current folder."""
    folder = tmp_path / "my elmo"
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "pip").touch(mode=0o755)
    for name in ("pyproject.toml", "constraints.txt"):
        (folder / name).touch()
    monkeypatch.setattr(invocation, "_CHECKOUT", folder)
    monkeypatch.setattr(sys, "prefix", str(folder / ".venv"))
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.chdir(folder)
    return folder


def test_in_a_checkout(checkout: Path) -> None:
    assert install_line("parquet") == ".venv/bin/pip install -c constraints.txt -e '.[parquet]'"


def test_installed_as_a_package(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "constraints.txt").unlink()
    assert install_line("parquet") == ".venv/bin/pip install 'elmo-zh[parquet]'"
    monkeypatch.setenv("PATH", str(checkout / ".venv" / "bin"))
    assert install_line("parquet") == "pip install 'elmo-zh[parquet]'"
    shutil.rmtree(checkout / ".venv")
    assert install_line("parquet") == f"{sys.executable} -m pip install 'elmo-zh[parquet]'"


@pytest.mark.parametrize(
    ("package", "extra", "use"),
    [
        ("opencc", "opencc", lambda: build_normaliser(TextConfig(script="simplified"))),
        ("opencc", "opencc", lambda: describe_script("simplified")),
        ("rjieba", "rjieba", lambda: build_segmenter(TextConfig(segmenter="rjieba"))),
        ("rjieba", "rjieba", lambda: describe_segmenter(TextConfig(segmenter="rjieba"))),
    ],
)
def test_a_package_that_is_missing(
    package: str, extra: str, use: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(importlib.metadata, "version", version)
    told = message_of(ElmoZhError, use)
    assert package in told
    assert told.endswith(f" Install it with: {install_line(extra)}")


@pytest.mark.parametrize(("name", "package"), [("sklearn", "sklearn.base"), ("spacy", "spacy.language")])
def test_a_module_whose_package_is_missing(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"elmo_zh.{name}", raising=False)
    with pytest.raises(ImportError, match=rf"elmo_zh\.{name} needs .*\. Install it with: "):
        importlib.import_module(f"elmo_zh.{name}")
