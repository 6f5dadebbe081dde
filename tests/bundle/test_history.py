"""Commands say which model they use: where it is, and what it was trained on, and when."""

import json
import shutil
from pathlib import Path

import pytest
from contract.command_line import SampleRun, changed_json, elmo_zh
from drawn_bundles import TOKENS, write_model

from elmo_zh.bundle.read import describe_model, load_bundle, load_history, model_line
from elmo_zh.run.files import file_digest
from elmo_zh.run.reporter import format_date


@pytest.fixture
def model(sample_run: SampleRun, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample_run.model, tmp_path / "model"))


def train_tokens(model: Path) -> int:
    return int(json.loads((model / "bundle.json").read_text(encoding="utf-8"))["training"]["train_tokens"])


def test_the_history_of_the_sample_run(sample_run: SampleRun) -> None:
    history = load_history(sample_run.model / "history.json")
    record = json.loads((sample_run.path / "stages" / "train.json").read_text(encoding="utf-8"))
    assert (history.run, list(history.corpus), history.num_sources) == ("新闻 1", ["corpus"], 1)
    assert history.trained_at >= record["started_at"]
    # It is no part of what identifies the model.
    assert "history.json" not in json.loads((sample_run.model / "bundle.json").read_text(encoding="utf-8"))["digests"]


def test_the_line(model: Path) -> None:
    history = load_history(model / "history.json")
    tokens = f"{train_tokens(model):,} tokens"
    expected = f"trained on corpus, {tokens}, {format_date(history.trained_at)}."
    assert model_line(load_bundle(model)) == f"Model: model, {expected}"
    Path("runs").mkdir()
    Path("runs/latest").symlink_to("../model")
    assert model_line(load_bundle(Path("runs/latest"))) == f"Model: runs/latest (model), {expected}"
    (model / "history.json").unlink()
    assert model_line(load_bundle(model)) == f"Model: model, trained on {tokens}."


def test_models_of_which_less_is_known(tmp_path: Path) -> None:
    model = write_model(tmp_path / "drawn", TOKENS)
    assert model_line(load_bundle(model)) == "Model: drawn, trained on ?."
    with changed_json(model / "bundle.json") as info:
        info["origin"]["program"] = "ELMoForManyLangs"
    assert model_line(load_bundle(model)) == "Model: drawn, converted from ELMoForManyLangs."


@pytest.mark.parametrize("command", ["embed", "evaluate"])
def test_commands_say_which_model_they_use(sample_run: SampleRun, command: str) -> None:
    shutil.copyfile(sample_run.heldout, "file.txt")
    answer = elmo_zh(command, "file.txt", "--segmented", "--model", sample_run.model, "--json")
    bundle = load_bundle(sample_run.model)
    assert answer.stderr.splitlines()[0] == model_line(bundle)
    found = answer.result()["model"]
    assert found == json.loads(json.dumps(describe_model(bundle)))
    assert (found["path"], found["made_by"]) == (str(sample_run.model), "elmo-zh")
    assert found["digest"] == file_digest(sample_run.model / "bundle.json")
    assert found["train_tokens"] == train_tokens(sample_run.model)
    assert (found["run"], found["corpus"], found["num_sources"]) == ("新闻 1", ["corpus"], 1)
