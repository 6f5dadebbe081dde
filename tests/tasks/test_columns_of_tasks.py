"""A task reads the columns that it was trained on, in every command, and names labels that it has never seen."""

import json
from pathlib import Path

import pytest
from contract.command_line import SampleRun, elmo_zh
from tasks.labelled import written

pytestmark = pytest.mark.usefixtures("empty_folder", "no_pictures")


def write_table(name: str, header: str, count: int = 60) -> Path:
    """Notes with a longer remark, and two columns that could be the label."""
    rows = [
        f"我{'不' * (n % 2)}喜欢第{n}条街,街道的备注比街道长第{n}条,{n % 2},{'东' if n % 3 else '西'}"
        for n in range(count)
    ]
    return written(Path(), name, "\n".join([header, *rows]) + "\n")


def test_columns_are_kept_and_mean_the_same_everywhere(sample_run: SampleRun) -> None:
    data = write_table("likes.csv", "原话,备注,答,方位")
    quick = ("--model", sample_run.model, "--epochs", "1", "--hidden", "5", "--inputs", "elmo")
    refused = elmo_zh("task", "fit", "classify", data, "--output", "t", *quick)
    assert "cannot tell which of these holds the label: 答 (0, 1); 方位 (东, 西)." in refused.stderr
    columns = ("--field", "原话", "--label-column", "答")
    answer = elmo_zh("task", "fit", "classify", data, *columns, "--output", "t", *quick)
    assert answer.status == 0, answer.stderr
    assert json.loads(Path("t", "task.json").read_text(encoding="utf-8"))["training"]["columns"] == ["原话", "答"]

    def scored(*options: str) -> str:
        return elmo_zh("task", "score", data, "--task", "t", *options).stdout

    assert scored() == scored("--field", "原话") == scored("--text-column", "原话", "--label-column", "答") != ""
    bare = written(Path(), "bare.csv", "日期,原话\n2024-10-01,我喜欢北京的街。\n2024-10-02,我不喜欢。\n")
    told = elmo_zh("task", "score", bare, "--task", "t").only_error()
    assert told.endswith("To label texts use task predict.")
    told = elmo_zh("task", "predict", bare, "--task", "t", "--output", "labels.xlsx").only_error()
    assert told == "--output labels.xlsx: the suffix is no known format. Use one of: .jsonl, .tsv, .csv, .conll"
    assert elmo_zh("task", "predict", bare, "--task", "t", "--output", "labels.conll").status == 2
    told = elmo_zh("task", "predict", bare, "--task", bare).only_error()
    assert told == "bare.csv holds no trained task (task.json is missing). Train one with: elmo-zh task fit"
    told = elmo_zh("task", "score", data, "--task", "t", "--label-column", "方位")
    assert told.status == 1
    assert "most labels are new to the task: 东, 西. It knows 0, 1." in told.stderr

    def texts(path: Path, *options: str) -> list[str]:
        answer = elmo_zh("task", "predict", path, "--task", "t", *options)
        return [json.loads(line)["text"] for line in answer.stdout.splitlines()]

    moved = write_table("moved.csv", "原话,备注,答,方位", 3)
    assert texts(moved) == texts(moved, "--field", "原话") == texts(moved, "--text-column", "原话")
    assert texts(moved)[1] == "我不喜欢第1条街"
    assert texts(moved, "--text-column", "备注")[1] == "街道的备注比街道长第1条"
    lines = written(Path(), "moved.jsonl", '{"备注": "比原话长的备注", "原话": "我喜欢"}\n' * 2)
    assert texts(lines) == ["我喜欢"] * 2
    both = elmo_zh("task", "predict", moved, "--task", "t", "--field", "原话", "--text-column", "备注")
    assert "--text-column and --field mean the same. Give one of them." in " ".join(both.stderr.split())
    # A file without these names is read by its own.
    assert texts(write_table("other.csv", "text,备注,答,方位", 3))[1] == "我不喜欢第1条街"
