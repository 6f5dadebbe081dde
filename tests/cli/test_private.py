"""With --private no token or line of the text is in messages, reports or what commands print about it."""

import json
from pathlib import Path

import pytest
from contract.command_line import SampleRun, elmo_zh, succeed

from elmo_zh.config.privacy import is_private

pytestmark = pytest.mark.usefixtures("empty_folder")

NAME = "欧阳锋"
FAST = ("--set", "text.num_workers=1")


def write_text() -> Path:
    path = Path("chat.txt")
    path.write_text("".join(f"客户{NAME}说<b>第{i}号</b>订单有问题。\n" for i in range(300)), encoding="utf-8")
    return path


def reports(run: str) -> str:
    paths = (Path(run, "corpus_report.md"), Path(run, "stages/segment.json"))
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def test_a_run_stays_private() -> None:
    path = write_text()
    assert elmo_zh("segment", path, "--run", "open", *FAST).status == 0
    assert NAME in reports("open")
    assert NAME in elmo_zh("inspect", "open").stdout
    assert NAME not in elmo_zh("inspect", "open", "--private").stdout
    answer = succeed("segment", path, "--run", "closed", *FAST, "--private")
    assert NAME not in reports("closed") + answer.stderr
    # The run's settings say so; the next command of the same process without them is not private.
    for options in ((), ("--json",)):
        answer = succeed("inspect", "closed", *options)
        assert NAME not in answer.stdout + answer.stderr
    assert json.loads(answer.stdout)["text"]["longest"] == []
    assert is_private()
    elmo_zh("inspect", "open")
    assert not is_private()


def test_embed_says_how_many_words_are_unknown_but_not_which(sample_run: SampleRun) -> None:
    path = Path("names.txt")
    path.write_text(f"{NAME} 黄药师\n" * 20, encoding="utf-8")
    arguments = ("embed", path, "--segmented", "--model", sample_run.model, "--output", "o.hdf5", "--force")
    answer = elmo_zh(*arguments)
    assert NAME in answer.stdout
    assert NAME in answer.stderr
    for options in (("--private",), ("--set", "text.private=true", "--json")):
        answer = succeed(*arguments, *options)
        assert NAME not in answer.stdout + answer.stderr
        assert "40" in answer.stdout


def test_errors_show_no_line() -> None:
    Path("names.conll").write_text(f"{NAME}\n", encoding="utf-8")
    Path("table.csv").write_text(f"{NAME},好\n好,{NAME}\n", encoding="utf-8")
    Path("cases.csv").write_text(f"{NAME}，诉李四,2023年0月,号{NAME}\n" * 9, encoding="utf-8")
    commands = (
        ("task", "fit", "tag", "names.conll", "--output", "t"),
        ("task", "fit", "classify", "cases.csv", "--output", "t"),
        ("task", "fit", "classify", "cases.csv", "--label-column", "病情", "--output", "t"),
        ("segment", "table.csv", "--run", "r", "--field", "x"),
    )
    for command in commands:
        assert NAME in elmo_zh(*command).stderr or command[0] == "task"
        told = elmo_zh(*command, "--private").stderr
        assert NAME not in told
