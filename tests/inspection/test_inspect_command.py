"""Plan a run, make it, and look at it, by the command line."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import SampleRun, changed_json, elmo_zh, succeed
from planning.corpora import FAST, PLAN_FAST, WIDTH, write_corpus

pytestmark = pytest.mark.usefixtures("empty_folder")


def test_a_folder_that_holds_nothing() -> None:
    begin = "Begin a run with: elmo-zh pipeline my-texts/ --run runs/my-texts, or elmo-zh segment CORPUS --run run"
    Path("run").mkdir()
    assert elmo_zh("inspect", "run").only_error() == f"run is not a run folder. {begin}"
    assert list(Path("run").iterdir()) == []


def test_a_run_that_is_only_segmented() -> None:
    assert elmo_zh("segment", write_corpus(), "--run", "run", *FAST).status == 0
    answer = succeed("inspect", "run", "--samples", "3")
    lines = answer.stdout.splitlines()
    start = lines.index("Random sentences:")
    sentences = [
        line for path in Path("run/segmented").glob("train-*.txt") for line in path.read_text("utf-8").split("\n")
    ]
    assert all(line.removeprefix("  ") in sentences for line in lines[start + 1 : start + 4])
    rows = {line.split()[0]: line.split() for line in lines if line}
    assert rows["a.txt"][1:3] == ["1", "1"]
    assert rows["c.jsonl.gz"][1:3] == ["1", "40"]
    assert Path("run/coverage.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_that_is_only_planned() -> None:
    assert elmo_zh("plan", write_corpus(), "--run", "run", *PLAN_FAST, *WIDTH).status == 0
    found = elmo_zh("inspect", "run", "--json").result()
    assert (found["stages"], found["text"]) == ({}, {})
    assert elmo_zh("inspect", "run").stdout.splitlines()[0] == "No stage has finished yet."


def test_a_finished_run(sample_run: SampleRun, run: Path) -> None:
    found = elmo_zh("inspect", run, "--tokens", "7", "--json").result()
    assert list(found["stages"]) == ["segment", "vocab", "word2vec", "encode", "train", "export"]
    assert list(found["sources"]) == ["food.txt", "nature.txt"]
    text: Any = found["text"]
    assert text["tokens"] == found["stages"]["segment"]["train_tokens"]
    assert len(text["most_frequent"]) == len(text["longest"]) == 7
    for shares in text["kinds"].values():
        assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
    curve = found["coverage_curve"]
    assert [point["share"] for point in curve] == sorted(point["share"] for point in curve)
    assert curve[-1]["share"] == pytest.approx(found["stages"]["vocab"]["coverage"], abs=1e-5)
    assert found["coverage_picture"] == str(run / "coverage.png")
    assert not (sample_run.path / "coverage.png").exists()


def test_the_verdict_of_a_finished_run_is_shown_again(sample_run: SampleRun, run: Path) -> None:
    found = elmo_zh("inspect", run, "--json").result()
    record = json.loads((run / "stages" / "train.json").read_text(encoding="utf-8"))
    assert found["verdict"] == record["counts"]["findings"]
    lines = elmo_zh("inspect", run).stdout.splitlines()
    shown = lines[lines.index("Verdict:") :]
    assert "\n".join(shown) in sample_run.answer.stderr
    # A run of an earlier version has none.
    with changed_json(run / "stages" / "train.json") as record:
        del record["counts"]["findings"]
    assert "Verdict:" not in elmo_zh("inspect", run).stdout.splitlines()


def test_many_sources_are_folded() -> None:
    folder = Path("corpus")
    folder.mkdir()
    for number in range(25):
        (folder / f"{number:02}.txt").write_text("山水。\n" * (30 - number), encoding="utf-8")
    assert elmo_zh("segment", folder, "--run", "run", *FAST).status == 0
    lines = elmo_zh("inspect", "run").stdout.splitlines()
    assert sum(line.split()[:1] != [] and line.split()[0].endswith(".txt") for line in lines) == 20
    assert [line.split()[:3] for line in lines if line.startswith("5 other")] == [["5", "other", "sources"]]


# A run that cannot be written


def test_a_run_that_cannot_be_written_is_shown_without_its_picture(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "coverage.png.unfinished")

    monkeypatch.setattr("elmo_zh.inspection.inspect_run.save_picture", refuse)
    answer = elmo_zh("inspect", run, "--json")
    assert answer.result()["coverage_picture"] == ""
    told = f"Warning: {run / 'coverage.png'} cannot be written (Permission denied), so the picture is not drawn."
    assert told in answer.stderr.splitlines()
