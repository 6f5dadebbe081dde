"""`elmo-zh runs`."""

import json
import shutil
from pathlib import Path

import pytest
from contract.command_line import changed_json, elmo_zh, succeed

from elmo_zh.run.layout import RunDir
from elmo_zh.run.list_runs import describe_runs, list_runs


def test_runs_and_the_latest(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run.parent
    monkeypatch.chdir(folder.parent)
    shutil.copytree(run, folder / "law" / "新闻 2")
    unfinished = folder / "law" / "新闻 2" / "stages"
    for stage in ("train", "export"):
        (unfinished / f"{stage}.json").unlink()
    (folder / "no run").mkdir()
    (folder / "latest").symlink_to("copy", target_is_directory=True)
    answer = succeed("runs", "--json")
    first, second = json.loads(answer.stdout)["runs"]
    trained = json.loads((run / "stages" / "train.json").read_text(encoding="utf-8"))["counts"]
    assert (first["run"], first["is_latest"], second["run"], second["is_latest"]) == (
        "runs/copy", True, "runs/law/新闻 2", False,
    )  # fmt: skip
    assert first["corpus"] == ["corpus"]
    assert first["perplexity"] == trained["heldout"]["perplexity"]
    assert first["bigram_perplexity"] == trained["baselines"]["bigram"]["perplexity"]
    assert first["train_tokens"] == second["train_tokens"] > 0
    assert first["bytes"] > second["bytes"] > 0 or first["bytes"] == second["bytes"]
    assert first["finished_at"] > first["started_at"] == second["started_at"]
    assert second["perplexity"] is None
    header, *lines = elmo_zh("runs").stdout.splitlines()
    assert header.split() == ["run", "corpus", "tokens", "disk", "perplexity", "bigram", "date"]
    assert lines[0].startswith("runs/copy        corpus  ")
    assert lines[0].endswith("  latest")
    assert f"{trained['heldout']['perplexity']:,.1f}" in lines[0]
    assert lines[1].startswith("runs/law/新闻 2  corpus  ")
    assert lines[1].endswith("  unfinished, last finished stage: encode; trained to step 100")
    # Its model changes nothing about that.
    answer = elmo_zh("export", "--run", "runs/law/新闻 2")
    assert "The training of runs/law/新闻 2 is not finished. To finish it: elmo-zh train --run" in answer.stderr
    [line] = [line for line in elmo_zh("runs").stdout.splitlines() if line.startswith("runs/law/新闻 2 ")]
    assert line.endswith("  unfinished, last finished stage: encode; trained to step 100")


def test_a_run_in_use(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.parent.parent)
    (run / "stages" / "export.json").unlink()
    shutil.rmtree(run / "model")
    with RunDir(Path("runs/copy")).locked(create=False):
        assert elmo_zh("runs").stdout.splitlines()[1].endswith("  in use now; unfinished, last finished stage: train")
    assert "in use" not in elmo_zh("runs").stdout


def test_no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = list_runs(tmp_path / "runs")
    assert found["runs"] == []
    (told,) = describe_runs(found)
    assert told.startswith(f"There are no runs in {tmp_path}/runs. Train a model with: elmo-zh pipeline my-texts/")
    assert told.endswith(" my-texts/ --run runs/my-texts")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("started_at", "yesterday"),
        ("seconds", "7"),
        ("seconds", 1e300),
        ("counts", {"heldout": 3, "baselines": [], "train_tokens": "many"}),
        ("counts", {"heldout": {"perplexity": "low"}, "baselines": {"bigram": 1}}),
    ],
)
def test_one_wrong_record_does_not_hide_the_other_runs(run: Path, name: str, wrong: object) -> None:
    shutil.copytree(run, run.parent / "sound")
    for stage in ("segment", "train"):
        with changed_json(run / "stages" / f"{stage}.json") as record:
            record[name] = wrong
    found = list_runs(run.parent)
    damaged, sound = sorted(found["runs"], key=lambda each: each["run"])
    assert (damaged["perplexity"], damaged["train_tokens"]) == (None, None)
    assert sound["perplexity"] > 0
    assert sum(1 for _ in describe_runs(found)) == 3
    (run / "stages" / "segment.json").write_text("{", encoding="utf-8")
    assert sorted(list_runs(run.parent)["runs"], key=lambda each: each["run"])[0]["corpus"] == []
