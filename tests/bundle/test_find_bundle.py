"""A path that should be a bundle and is none: the message says what is there, and what was probably meant."""

from pathlib import Path

import pytest
from contract.command_line import changed_json
from drawn_bundles import install_model

from elmo_zh.bundle.find_bundle import default_bundle, explain_no_bundle, starter_advice
from elmo_zh.config import Config
from elmo_zh.run.mark import write_mark

TRAIN = "elmo-zh pipeline my-texts/ --run runs/my-texts"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    return tmp_path


def make_run(path: str, *, trained: bool = False, exported: bool = False) -> None:
    (Path(path) / "stages").mkdir(parents=True)
    if trained:
        (Path(path) / "checkpoints").mkdir()
    if exported:
        (Path(path) / "model").mkdir()
        (Path(path) / "model" / "bundle.json").touch()


def test_there_is_no_model_yet() -> None:
    assert explain_no_bundle(Path("model")) == f"model does not exist. Train a model: {TRAIN}"
    Path("model").mkdir()
    told = "model is not a model bundle: bundle.json is missing. Train a model: "
    assert explain_no_bundle(Path("model")) == f"{told}{TRAIN}"


def test_a_file_of_a_bundle() -> None:
    make_run("runs/law", trained=True, exported=True)
    told = explain_no_bundle(Path("runs/law/model/bundle.json"))
    assert told.endswith("is a file, not the folder of a model bundle. Did you mean runs/law/model?")


def test_another_folder_of_elmo_zh() -> None:
    for folder, what, kind in (("a", "a trained task", "task"), ("b", "an index", "index")):
        Path(folder).mkdir()
        write_mark(Path(folder), kind, 1, {})
        told = explain_no_bundle(Path(folder))
        assert told == f"{folder} is {what}, not a model bundle. Show it with: elmo-zh info {folder}"


@pytest.mark.parametrize("path", ["runs/lwa/model", "runs/lwa", "lawn", "/elsewhere/law/model"])
def test_a_name_that_is_close(path: str) -> None:
    make_run("runs/law", trained=True, exported=True)
    make_run("runs/medicine", trained=True, exported=True)
    assert explain_no_bundle(Path(path)) == f"{path} does not exist. Did you mean runs/law/model?"


def test_a_name_that_is_not_close() -> None:
    for name in ("law", "medicine", "novels", "web"):
        make_run(f"runs/{name}", trained=True, exported=True)
    Path("runs/latest").symlink_to("law")
    assert explain_no_bundle(Path("x")) == (
        "x does not exist. Give a model, such as runs/law/model, runs/medicine/model, runs/novels/model, or train one:"
        f" {TRAIN}"
    )


@pytest.mark.parametrize("part", ["", "/model"])
def test_a_run_without_a_model(part: str) -> None:
    make_run("runs/new law")
    problem = "does not exist: the run runs/new law has no model" if part else "is a run, not a model bundle"
    path = Path(f"runs/new law{part}")
    told = explain_no_bundle(path)
    assert told.startswith(f"{path} {problem}. The run has not been trained yet. Continue with: elmo-zh pipeline ")
    Path("runs/new law/checkpoints").mkdir()
    assert explain_no_bundle(path) == f"{path} {problem}. Export its model first: elmo-zh export --run 'runs/new law'"


def test_a_run_with_a_model() -> None:
    make_run("runs/law", trained=True, exported=True)
    assert explain_no_bundle(Path("runs/law")) == "runs/law is a run, not a model bundle. Its model is runs/law/model"


def test_a_model_of_another_program() -> None:
    Path("published").mkdir()
    Path("published/options.json").touch()
    told = explain_no_bundle(Path("published"))
    assert told.endswith("no bundle.json. To convert another program's model: elmo-zh convert published --output DIR")


def test_a_folder_with_the_name_of_the_starter_is_not_the_installed_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = install_model(folder / "installed", "starter", monkeypatch)
    (folder / "starter").mkdir()
    assert default_bundle() == model
    with changed_json(model / "bundle.json") as info:
        info["training"]["train_tokens"] = 300_000
    (advice,) = starter_advice(Config(), num_tokens=1_000)
    assert "trained on 300,000 tokens: add " in advice
