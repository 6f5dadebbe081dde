"""Data that nothing can be learned from is told before the training or in the last lines, not called a trained task."""

from pathlib import Path

import pytest
from contract.command_line import SampleRun, succeed
from messages import Heard, message_of
from tasks.labelled import CLASSIFY, load, written

from elmo_zh.config.task_settings import DataFiles, Reading
from elmo_zh.corpus.read_labelled import read_labelled
from elmo_zh.errors import CorpusError


@pytest.mark.usefixtures("no_pictures")
def test_a_network_that_learned_nothing_is_not_called_trained(sample_run: SampleRun) -> None:
    rows = "".join(f"我喜欢第{n}条街,{'东' if n % 19 else '西'}\n" for n in range(60))
    written(Path(), "a.csv", f"text,label\n{rows}")
    quick = ("--model", sample_run.model, "--output", "t", "--epochs", "1", "--hidden", "5", "--inputs", "elmo")
    lines = succeed("task", "fit", "classify", "a.csv", *quick).stdout.splitlines()
    [told] = [line for line in lines if line.startswith("Do not rely on this score: ")]
    assert " is no better than always answering '东' (" in told
    assert not any(line.startswith("Next: ") for line in lines)


@pytest.mark.parametrize(("kind", "texts", "label"), [("classify", ("q",), "q"), ("pairs", ("q", "q"), "label")])
def test_a_text_is_not_its_own_label(tmp_path: Path, kind: str, texts: tuple[str, ...], label: str) -> None:
    path = written(tmp_path, "a.csv", "q,a,label\n好,不,1\n")
    reading = Reading(kind=kind, text_columns=texts, label_column=label)
    assert "'q' was chosen twice" in message_of(CorpusError, lambda: read_labelled(path, reading))


def test_files_cut_from_a_sorted_one(tmp_path: Path) -> None:
    rows = [f"第{n}条街,{'东西北'[n // 30]}\n" for n in range(90)]
    first = written(tmp_path, "first.csv", "text,label\n" + "".join(rows[:30]))
    told = message_of(CorpusError, lambda: load(DataFiles(data=first), CLASSIFY, Heard()))
    assert "have only one label, '东'" in told
    assert "shuffle it before dividing it" in told
    two = written(tmp_path, "two.csv", "text,label\n" + "".join(rows[:60]))
    rest = written(tmp_path, "rest.csv", "text,label\n" + "".join(rows[60:]))
    heard = Heard()
    load(DataFiles(data=two, test=rest), CLASSIFY, heard)
    assert any("test labels never occur in training and count as wrong: 北" in x for x in heard.warnings)
    limited = load(DataFiles(data=whole, limit=20), CLASSIFY, Heard())
    assert len(limited.labels) == 3
    told = message_of(CorpusError, lambda: load(DataFiles(data=whole, limit=1), CLASSIFY, Heard()))
    assert "raise --limit" in told


def test_texts_without_chinese_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "text,label\n" + "".join(f"room {n} was cold,{n % 2}\n" for n in range(40)))
    heard = Heard()
    load(DataFiles(data=path), CLASSIFY, heard)
    (told,) = heard.warnings
    assert "(the first text is 'room 0 was cold')" in told
    assert told.endswith("--text-column NAME")
