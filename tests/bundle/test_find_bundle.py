"""A path that should be a bundle and is none: the message says what is there, and what to do."""

from pathlib import Path

import pytest
from drawn_bundles import install_model

from elmo_zh.bundle.find_bundle import default_bundle, explain_no_bundle
from elmo_zh.run.files import sealed, write_json
from elmo_zh.run.outputs import write_mark
from elmo_zh.run.record import RECORD_FORMAT


def make_run(path: str, *parts: str) -> None:
    for part in ("stages", *parts):
        (Path(path) / part).mkdir(parents=True)
    if "model" in parts:
        (Path(path) / "model" / "bundle.json").touch()


@pytest.mark.parametrize(
    ("path", "parts", "step"),
    [
        ("runs/new law", (), "elmo-zh pipeline "),
        ("runs/new law/model", (), "elmo-zh pipeline "),
        ("runs/new law", ("checkpoints",), "elmo-zh export --run 'runs/new law'"),
        ("runs/new law/model", ("checkpoints",), "elmo-zh export --run 'runs/new law'"),
        ("runs/new law", ("checkpoints", "model"), "runs/new law/model"),
        ("elsewhere", (), "elmo-zh pipeline "),
    ],
)
def test_what_is_there_instead(path: str, parts: tuple[str, ...], step: str) -> None:
    make_run("runs/new law", *parts)
    told = explain_no_bundle(Path(path))
    assert told.startswith(path.removesuffix("/model"))
    assert step in told


def test_training_that_was_stopped_goes_on_before_its_export() -> None:
    make_run("runs/stopped", "checkpoints")
    record = {"stage": "train", "format": RECORD_FORMAT, "finished": False}
    write_json(Path("runs/stopped/stages/train.json"), sealed(record))
    assert "elmo-zh train --run runs/stopped" in explain_no_bundle(Path("runs/stopped"))


def test_another_folder_of_elmo_zh_or_of_another_program() -> None:
    for folder, kind in (("a", "task"), ("b", "index")):
        Path(folder).mkdir()
        write_mark(Path(folder), kind, 1, {})
        assert f"elmo-zh info {folder}" in explain_no_bundle(Path(folder))
    Path("published").mkdir()
    Path("published/options.json").touch()
    assert "elmo-zh info published" in explain_no_bundle(Path("published"))


def test_a_folder_with_the_name_of_the_starter_is_not_the_installed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = install_model(tmp_path / "installed", "starter", monkeypatch)
    (tmp_path / "starter").mkdir()
    assert default_bundle() == model
    assert "starter" in explain_no_bundle(Path("elsewhere"))
