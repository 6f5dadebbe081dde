"""Data that nothing can be learned from is told before the training or in the last lines, not called a trained task."""

from collections.abc import Callable
from pathlib import Path

import pytest
from contract.command_line import SampleRun, elmo_zh, succeed
from messages import Heard, message_of
from tasks.labelled import CLASSIFY, lines, load, written

from elmo_zh.config.task_settings import DataFiles, Reading
from elmo_zh.corpus.read_labelled import read_labelled
from elmo_zh.errors import CorpusError

SORTED = "Add examples with the missing labels. If the data was sorted by label, shuffle it before dividing it."


@pytest.mark.parametrize(
    ("label_of", "doubt"),
    [
        (lambda n: f"N{n}", "training examples look like ids, from which nothing can be learned. Name another"),
        (lambda n: "东" if n % 19 else "西", " is no better than always answering '东' ("),
    ],
)
@pytest.mark.usefixtures("empty_folder", "no_pictures")
def test_a_network_that_learned_nothing_is_not_called_trained(
    sample_run: SampleRun, label_of: Callable[[int], str], doubt: str
) -> None:
    rows = "".join(f"我喜欢第{n}条街,{label_of(n)}\n" for n in range(60))
    Path("a.csv").write_text(f"text,label\n{rows}", encoding="utf-8")
    quick = ("--model", sample_run.model, "--output", "t", "--epochs", "1", "--hidden", "5", "--inputs", "elmo")
    answer = succeed("task", "fit", "classify", "a.csv", *quick)
    *_, told, last = answer.stdout.splitlines()
    assert told.startswith("Do not rely on this score: ")
    assert doubt in told
    assert last == "Wrote t"
    assert "sorted" not in answer.stderr


@pytest.mark.usefixtures("empty_folder", "no_pictures")
def test_a_network_that_learned_something_is_a_trained_task(sample_run: SampleRun) -> None:
    rows = "".join(f"{'今天' if n % 2 else '北京'}的第{n}条街,{n % 2}\n" for n in range(60))
    Path("a.csv").write_text(f"text,label\n{rows}", encoding="utf-8")
    quick = ("--output", "t", "--epochs", "12", "--hidden", "7", "--inputs", "elmo", "--learning-rate", "0.02")
    answer = elmo_zh("task", "fit", "classify", "a.csv", "--model", sample_run.model, *quick)
    assert answer.stdout.splitlines()[-2:] == ["Trained task: t", "Next: elmo-zh task predict file.txt --task t"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_text_is_not_its_own_label(tmp_path: Path, name: str) -> None:
    content = "q,a,label\n好,不,1\n" if name == "a.csv" else lines({"q": "好", "a": "不", "label": 1})
    path = written(tmp_path, name, content)
    own = Reading(kind="classify", text_columns=("q",), label_column="q")
    assert "'q' was chosen twice" in message_of(CorpusError, lambda: read_labelled(path, own))
    alike = Reading(kind="pairs", text_columns=("q", "q"), label_column="label")
    assert "'q' was chosen twice" in message_of(CorpusError, lambda: read_labelled(path, alike))


def test_files_cut_from_a_sorted_one(tmp_path: Path) -> None:
    rows = [f"第{n}条街,{'东西北'[n // 30]}\n" for n in range(90)]
    whole = written(tmp_path, "all.csv", "text,label\n" + "".join(rows))
    assert read_labelled(whole, CLASSIFY).notes[1:] == ("the file is sorted by label",)
    first = written(tmp_path, "first.csv", "text,label\n" + "".join(rows[:30]))
    told = message_of(CorpusError, lambda: load(DataFiles(data=first), CLASSIFY, Heard()))
    assert f"has only one label, '东', but at least two are needed. {SORTED}" in told
    two = written(tmp_path, "two.csv", "text,label\n" + "".join(rows[:60]))
    rest = written(tmp_path, "rest.csv", "text,label\n" + "".join(rows[60:]))
    heard = Heard()
    load(DataFiles(data=two, test=rest), CLASSIFY, heard)
    assert any(f"test labels (北). {SORTED}" in x for x in heard.warnings)
    limited = load(DataFiles(data=whole, limit=20), CLASSIFY, Heard())
    assert len(limited.labels()) == 3
    told = message_of(CorpusError, lambda: load(DataFiles(data=whole, limit=1), CLASSIFY, Heard()))
    assert told.endswith("but at least two are needed. Raise --limit, which chooses the training examples at random.")
    ids = written(tmp_path, "ids.csv", "text,label\n" + "".join(f"第{n}条街,号{n}\n" for n in range(60)))
    load(DataFiles(data=ids, test=two), CLASSIFY, heard)
    assert any("Most labels occur only once, as ids do." in x for x in heard.warnings)


def test_texts_without_chinese_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "text,label\n" + "".join(f"room {n} was cold,{n % 2}\n" for n in range(40)))
    heard = Heard()
    load(DataFiles(data=path), CLASSIFY, heard)
    (told,) = heard.warnings
    assert told.startswith("Hardly any training text contains Chinese (the first text is 'room 0 was cold'), but ELMo")
    assert told.endswith(" in another column, name that column: --text-column NAME")
