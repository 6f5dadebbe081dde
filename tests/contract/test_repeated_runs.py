"""A run typed again does nothing, one from scratch gives the same, and a change redoes what depends on it."""

import json
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import (
    STAGES,
    SampleRun,
    contents,
    contents_alone,
    elmo_zh,
    metrics_lines,
    remove_training,
)

# Records, metrics and what is made of them hold times.
WITH_TIMES = re.compile(
    r"(stages|checkpoints/step-\d+)/\w+\.json|metrics\.jsonl|training\.png|model/(model_card\.md|history\.json)"
)
TIMES = ("tokens_per_second", "elapsed_seconds")


def without_times(value: dict[str, Any]) -> dict[str, Any]:
    return {name: figure for name, figure in value.items() if name not in TIMES}


@pytest.fixture(scope="module")
def stage_by_stage(sample_run: SampleRun, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The same run from scratch, one command after another, with the corpus somewhere else; and their results."""
    folder = tmp_path_factory.mktemp("again")
    corpus, run = folder / "elsewhere", folder / "run"
    shutil.copytree(sample_run.corpus, corpus)
    files = [corpus / "nature.txt", corpus / "food.txt"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        first = elmo_zh("segment", *files, "--run", run, "--config", sample_run.config, "--json").result()
        return run, {"segment": first} | {
            stage: elmo_zh(stage, "--run", run, "--json").result() for stage in STAGES[1:]
        }


def test_two_runs_from_scratch_are_the_same(sample_run: SampleRun, stage_by_stage: tuple[Path, dict[str, Any]]) -> None:
    again, _ = stage_by_stage
    first, second = (contents_alone(path) for path in (sample_run.path, again))
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name] and not WITH_TIMES.fullmatch(name)] == []
    assert [without_times(line) for line in metrics_lines(again)] == [
        without_times(line) for line in metrics_lines(sample_run.path)
    ]


def test_stage_commands_answer_with_one_json_object(stage_by_stage: tuple[Path, dict[str, Any]]) -> None:
    run, results = stage_by_stage
    for stage, result in results.items():
        assert result["stage"] == stage
        assert result["run"] == str(run)
        assert result["skipped"] is False
        record = json.loads((run / "stages" / f"{stage}.json").read_text(encoding="utf-8"))
        assert {name: result[name] for name in record["counts"]} == record["counts"]
    # Only the pipeline makes the link named latest.
    assert sorted(path.name for path in run.parent.iterdir()) == ["elsewhere", "run"]


def test_a_run_elsewhere_is_not_the_latest_and_a_real_folder_is_left_alone(
    sample_run: SampleRun, run: Path, tmp_path: Path
) -> None:
    latest = tmp_path / "runs" / "latest"
    latest.unlink(missing_ok=True)
    assert elmo_zh("pipeline", sample_run.corpus, "--run", sample_run.path).status == 0
    assert not latest.exists()
    (latest / "mine").mkdir(parents=True)
    assert elmo_zh("pipeline", sample_run.corpus, "--run", run).status == 0
    assert list(latest.iterdir()) == [latest / "mine"]


def test_a_run_can_be_moved_and_its_corpus_too(sample_run: SampleRun, run: Path, tmp_path: Path) -> None:
    corpus = shutil.copytree(sample_run.corpus, tmp_path / "elsewhere")
    for path in [*run.rglob("*"), *corpus.iterdir()]:
        path.touch()  # a copy without its time stamps
    before = contents(run)
    answer = elmo_zh("pipeline", corpus, "--run", run, "--json")
    assert answer.result() == {"run": str(run), "model": str(run / "model")}
    assert answer.stderr.splitlines() == [f"{stage}: nothing has changed, skipped." for stage in STAGES]
    assert contents(run) == before


def test_a_change_redoes_the_stages_from_the_first_that_it_concerns(untrained_run: Path) -> None:
    run = untrained_run
    assert elmo_zh("vocab", "--run", run, "--set", "vocab.size=101", "--json").result()["rows"] == 101
    answer = elmo_zh("encode", "--run", run, "--json")
    assert answer.result()["skipped"] is False
    assert "encode runs again: 2 files changed (character_counts.tsv, vocab.data)." in answer.stderr.splitlines()
    assert elmo_zh("word2vec", "--run", run, "--json").result()["covered"] == 98
    answer = elmo_zh("word2vec", "--run", run, "--set", "word2vec.epochs=3")
    assert "word2vec runs again: word2vec.epochs 2 -> 3." in answer.stderr.splitlines()
    assert elmo_zh("encode", "--run", run, "--json").result()["skipped"] is True


def press_control_c(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


def terminate(*_: object) -> None:
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("stage", "place", "stop", "status"),
    [
        ("word2vec", "elmo_zh.stages.text.save_word_vectors", press_control_c, 130),
        ("export", "elmo_zh.bundle.write._write_golden", terminate, 143),
    ],
)
def test_a_stage_that_was_interrupted_is_done_when_typed_again(
    run: Path, monkeypatch: pytest.MonkeyPatch, stage: str, place: str, stop: Callable[..., None], status: int
) -> None:
    """Stages that are no jobs (contract/test_jobs.py); training has tests of its own."""
    if stage != "export":
        remove_training(run)
    before = contents_alone(run)
    arguments: list[str | Path] = [stage, "--run", run, "--json"]
    with monkeypatch.context() as during:
        during.setattr(place, stop)
        answer = elmo_zh(*arguments, "--force")
    assert answer.status == status
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    # What was there stays as it was, whole, and its record with it.
    assert contents_alone(run) == before
    assert elmo_zh(*arguments, "--force").result()["skipped"] is False
    assert set(contents_alone(run)) == set(before)
    assert elmo_zh(*arguments).result()["skipped"] is True
