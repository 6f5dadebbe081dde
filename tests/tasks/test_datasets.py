"""From files to training, development and test examples; what makes scores worth less is told."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest
from contract.command_line import SampleRun, succeed
from messages import Heard, message_of
from tasks.labelled import CLASSIFY, TAG, lines, load, table, written

from elmo_zh.config.task_settings import DataFiles
from elmo_zh.errors import CorpusError
from elmo_zh.tasks.datasets import find_files, split_into_folds

PARTS = ("train", "dev", "test")
NAMES = [
    ("train.csv", "dev.csv", "test.csv"),
    ("train_data.txt", "validation.csv", "testset.txt"),
    ("news.train.txt", "news.val.txt", "news.test.txt"),
    ("zh_x-ud-train.csv", "zh_x-ud-dev.csv", "zh_x-ud-test.csv"),
    ("train.txt", "testa.txt", "testb.txt"),
    ("train.csv.gz", "valid.csv.gz", "test.csv.gz"),
]


@pytest.mark.parametrize("names", NAMES)
def test_names_of_parts(tmp_path: Path, names: tuple[str, str, str]) -> None:
    for number, name in enumerate(names):
        path = written(tmp_path, name, table(range(10 * number, 10 * number + 4 + number)))
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(path.read_bytes()))
    for other in (".DS_Store", "README.md", "labels.txt", "testing/dev.csv"):
        written(tmp_path, other, "好\n")
    notes = Heard()
    dataset = load(DataFiles(data=tmp_path), CLASSIFY, notes)
    assert [len(rows) for rows in dataset.split.parts().values()] == [4, 5, 6]
    assert "labels.txt" in notes.notes[0]


def test_unlabelled_test_examples_of_a_folder_are_left_out(tmp_path: Path) -> None:
    written(tmp_path, "train.csv", table(range(60)))
    test = written(tmp_path, "test.csv", "id,text\n0,第100个句子\n")
    notes = Heard()
    dataset = load(DataFiles(data=tmp_path), CLASSIFY, notes)
    assert any(str(test) in note for note in notes.notes)
    assert sum(map(len, dataset.split.parts().values())) == 60
    assert len(dataset.split.test)
    told = message_of(CorpusError, lambda: load(DataFiles(data=tmp_path, test=test)))
    assert "cannot tell which of these to use for --label-column: id, text" in told


def test_which_of_several_files(tmp_path: Path) -> None:
    only = written(tmp_path, "one/reviews.csv", table(range(60)))
    assert find_files(DataFiles(data=only.parent), Heard()).data == only
    written(tmp_path, "many/train.csv", table(range(60)))
    for name in ("a.test.csv", "b.test.csv"):
        written(tmp_path, f"many/{name}", table(range(100, 102)))
    given = DataFiles(data=tmp_path / "many", test=tmp_path / "many" / "b.test.csv")
    assert find_files(given, Heard()).data.name == "train.csv"
    (tmp_path / "none").mkdir()
    for name, content in (("0.ann", ""), ("1.ann", "T1\tPER 0 3\t王小明\n"), ("1.txt", "王小明来了")):
        written(tmp_path, f"brat/{name}", content)
    problems = {
        "none": "no file with the word train in its name",
        "many": "(a.test.csv, b.test.csv)",
        "brat": "in brat format (",
    }
    for folder, problem in problems.items():
        given = DataFiles(data=tmp_path / folder)
        assert problem in message_of(CorpusError, lambda given=given: find_files(given, Heard()))


def test_a_split_keeps_copies_together(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", table(range(300), copies=2))
    datasets = [load(DataFiles(data=path, seed=seed)) for seed in (1, 1, 2)]
    texts = [{part: [e.texts[0] for e in each.part(part)] for part in PARTS} for each in datasets]
    assert texts[0] == texts[1] != texts[2]
    for each in texts:
        sets = [set(part) for part in each.values()]
        assert sum(map(len, each.values())) == 600
        assert len(sets[0] | sets[1] | sets[2]) == sum(map(len, sets)) == 300
        assert 20 <= len(sets[1]) <= 40 or 20 <= len(sets[2]) <= 45


def test_limits_are_nested(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", table(range(300)))
    limits = (None, 10_000, 100, 30)
    whole, same, more, few = ({*load(DataFiles(data=path, limit=limit)).split.train.tolist()} for limit in limits)
    assert whole == same > more > few
    assert (len(more), len(few)) == (100, 30)
    dataset = load(DataFiles(data=path))
    folds = zip(*(split_into_folds(dataset, 3, 1, limit) for limit in limits), strict=True)
    for split, same_split, _of_100, of_30 in folds:
        assert split.train.tolist() == same_split.train.tolist()
        assert {*of_30.train.tolist()} < {*split.train.tolist()}
        assert len(of_30.train) == 30
        assert of_30.test.tolist() == split.test.tolist()


def rows_of_parts(form: str, parts: Sequence[str]) -> str:
    """Numbered texts; each text that comes twice has one label."""
    rows = [(f"{number}好", number % 2, part) for number, part in enumerate(parts)]
    if form == "csv":
        return "text,label,Split\n" + "".join(f"{text},{label},{part}\n" for text, label, part in rows)
    return lines(*({"Split": part, "text": text, "label": label} for text, label, part in rows))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_column_divides_the_examples(tmp_path: Path, form: str) -> None:
    parts = ["train", "Train", "validation", "test", "train", "test ", "dev", "train"]
    dataset = load(DataFiles(data=written(tmp_path, f"a.{form}", rows_of_parts(form, parts))))
    found = {part: [example.texts[0] for example in dataset.part(part)] for part in PARTS}
    assert found == {"train": ["0好", "1好", "4好", "7好"], "dev": ["2好", "6好"], "test": ["3好", "5好"]}
    # A part that the column lacks is split off.
    path = written(tmp_path, f"b.{form}", rows_of_parts(form, ["train"] * 60 + ["test"] * 7))
    dataset = load(DataFiles(data=path))
    assert dataset.split.test.tolist() == [*range(60, 67)]
    assert sorted([*dataset.split.train, *dataset.split.dev]) == [*range(60)]
    assert len(dataset.split.dev)
    path = written(tmp_path, f"c.{form}", rows_of_parts(form, ["train"] * 250 + ["other"]))
    told = message_of(CorpusError, lambda: load(DataFiles(data=path)))
    assert "Split = 'other'; expected train, dev, test." in told
    assert told.startswith(f"{path}: r")


def test_what_makes_scores_worth_less_is_reported(tmp_path: Path) -> None:
    train = written(tmp_path, "train.csv", "text,label\n好,1\n坏,0\n好,0\n")
    dev = written(tmp_path, "dev.csv", "text,label\n好,1\n新,2\n新的,2\n")
    messages = Heard()
    load(DataFiles(data=train, dev=dev), CLASSIFY, messages)
    assert messages.warnings == [
        "2 of 3 dev labels never occur in training and count as wrong: 2.",
        "1 of 3 dev texts also occur in training, so the scores are too optimistic.",
        "Training texts that occur with different labels: 1.",
    ]
    english = written(tmp_path, "b.csv", "text,label\n" + "".join(f"room {n} was cold,{n % 2}\n" for n in range(40)))
    messages = Heard()
    load(DataFiles(data=english), CLASSIFY, messages)
    assert "(the first text is 'room 0 was cold')" in messages.warnings[0]


def test_labels_of_spans_are_named_as_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", lines(*({"text": f"王在{n}", "label": [[0, 1, "PER"]]} for n in range(12))))
    other = written(tmp_path, "b.jsonl", lines({"text": "王在沪", "label": [[0, 1, "PER"], [2, 3, "LOC"]]}))
    told = Heard()
    load(DataFiles(data=path, dev=path, test=other), TAG, told)
    assert "(PER 12)" in told.notes[0]
    assert any(warning.endswith(": LOC.") and "1 of 2 test labels" in warning for warning in told.warnings)


def test_parts_that_do_not_fit(tmp_path: Path) -> None:
    few = written(tmp_path, "train.csv", "text,label\n好,1\n")
    one = written(tmp_path, "one.csv", "text,label\n" + "".join(f"第{n}条街,东\n" for n in range(30)))
    whole = written(tmp_path, "a.csv", table(range(90), num_labels=3))
    spans = written(tmp_path, "train.conll", "李 B-PER\n白 I-PER\n\n好 O\n")
    words = written(tmp_path, "dev.conll", "李白 NN\n来 VV\n\n今天 NN\n")
    problems = [
        (DataFiles(data=few), CLASSIFY, "There are no"),
        (DataFiles(data=one), CLASSIFY, "have only one label, '东'"),
        (DataFiles(data=whole, limit=1), CLASSIFY, "If you set --limit, raise it"),
        (DataFiles(data=spans, dev=words), TAG, "(one tag per word) and "),
    ]
    for files, reading, problem in problems:
        assert problem in message_of(CorpusError, lambda files=files, reading=reading: load(files, reading))


@pytest.mark.usefixtures("no_pictures")
def test_a_network_that_learned_nothing_is_not_called_trained(sample_run: SampleRun) -> None:
    rows = "".join(f"我喜欢第{n}条街,{'东' if n % 19 else '西'}\n" for n in range(60))
    written(Path(), "a.csv", f"text,label\n{rows}")
    quick = ("--model", sample_run.model, "--output", "t", "--epochs", "1", "--hidden", "5", "--inputs", "elmo")
    told = succeed("task", "fit", "classify", "a.csv", *quick).stdout.splitlines()
    [doubt] = [line for line in told if line.startswith("Do not rely on this score: ")]
    assert " is no better than always answering '东' (" in doubt
    assert not any(line.startswith("Next: ") for line in told)
