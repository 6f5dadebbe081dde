"""`elmo-zh info` of a run, finished or not, and of a folder of runs."""

import json
import os
import shutil
from pathlib import Path

import pytest
from contract.command_line import SampleRun, changed_json, elmo_zh, succeed
from planning.corpora import FAST, write_corpus

from elmo_zh.info.describe import list_lines, list_runs
from elmo_zh.run.outputs import kind_of


def test_a_run_that_is_only_segmented() -> None:
    assert elmo_zh("segment", write_corpus(), "--run", "run", *FAST).status == 0
    assert kind_of(Path("run")) == "run"
    lines = succeed("info", "run", "--check").stdout.splitlines()
    assert any(line.startswith("Files checked: ") for line in lines)
    (text,) = Path("run/segmented").glob("heldout-*.txt")
    text.write_text("山\n", encoding="utf-8")
    assert f"is damaged (segmented/{text.name})." in elmo_zh("info", "run", "--check").errors[0]
    lines = succeed("info", "run").stdout.splitlines()
    assert lines[-1].startswith("Next: ")


def test_the_verdict_of_a_finished_run_is_shown_again(sample_run: SampleRun, run: Path) -> None:
    found = elmo_zh("info", run, "--json").result()
    record = json.loads((run / "stages" / "train.json").read_text(encoding="utf-8"))
    assert found["verdict"] == record["counts"]["findings"]
    assert list(found["stages"]) == ["segment", "vocab", "word2vec", "encode", "train", "export"]
    assert found["next"] == f"Next: elmo-zh embed file.txt --model {run / 'model'}"
    lines = elmo_zh("info", run).stdout.splitlines()
    assert "\n".join(lines[lines.index("Verdict:") : -1]) in sample_run.answer.stderr
    # A run of an earlier version has none.
    with changed_json(run / "stages" / "train.json") as record:
        del record["counts"]["findings"]
    assert "Verdict:" not in elmo_zh("info", run).stdout.splitlines()


@pytest.mark.parametrize("name", ["stages/train.json", "config.toml", "elmo-zh.json", "vocab.data", ".lock"])
def test_a_pipe_in_a_run_is_named_and_never_opened(run: Path, name: str) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    for command in (("info", run), ("export", "--run", run)):
        assert elmo_zh(*command).only_error().startswith(f"{run / name} is ")
    assert elmo_zh("info", run.parent).only_error().startswith(f"{run / name} is ")


def test_runs_and_the_latest(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run.parent
    monkeypatch.chdir(folder.parent)
    shutil.copytree(run, folder / "law" / "新闻 2")
    unfinished = folder / "law" / "新闻 2" / "stages"
    for stage in ("train", "export"):
        (unfinished / f"{stage}.json").unlink()
    (folder / "no run").mkdir()
    (folder / "latest").symlink_to("copy", target_is_directory=True)
    first, second = elmo_zh("info", "--json").result()["runs"]
    trained = json.loads((run / "stages" / "train.json").read_text(encoding="utf-8"))["counts"]
    assert (first["path"], first["is_latest"], second["path"], second["is_latest"]) == (
        "runs/copy", True, "runs/law/新闻 2", False,
    )  # fmt: skip
    assert first["corpus"] == ["corpus"]
    assert first["perplexity"] == trained["heldout"]["perplexity"]
    assert first["bigram_perplexity"] == trained["baselines"]["bigram"]["perplexity"]
    assert first["train_tokens"] == second["train_tokens"] > 0
    assert first["finished_at"] > first["started_at"] == second["started_at"]
    assert second["perplexity"] is None
    # The model of an unfinished run does not make it finished.
    assert "is not finished" in elmo_zh("export", "--run", "runs/law/新闻 2").stderr
    header, *lines = elmo_zh("info").stdout.splitlines()
    assert header.split() == ["run", "corpus", "tokens", "disk", "perplexity", "bigram", "date"]
    [done] = [line for line in lines if line.startswith("runs/copy        corpus  ")]
    [not_done] = [line for line in lines if line.startswith("runs/law/新闻 2  corpus  ")]
    assert done.endswith("  latest")
    assert not_done.endswith("  unfinished, last stage: train 100")


def test_no_runs() -> None:
    assert elmo_zh("info").stdout.startswith("runs is not a run. Begin one with: elmo-zh pipeline my-texts/")
    assert not elmo_zh("info", "--json").result()["runs"]


def test_one_wrong_record_does_not_hide_the_other_runs(run: Path) -> None:
    shutil.copytree(run, run.parent / "sound")
    (run / "stages" / "train.json").write_text("{", encoding="utf-8")
    with changed_json(run / "stages" / "segment.json") as record:
        record["counts"] = {"train_tokens": "many"}
    runs = list_runs(run.parent)
    damaged, sound = sorted(runs, key=lambda each: str(each["path"]))
    assert (damaged["perplexity"], damaged["train_tokens"]) == (None, None)
    assert sound["perplexity"] > 0
    assert sum(1 for _ in list_lines(runs)) == 3
