"""The commands of labelled tasks, typed as users type them."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import SampleRun, elmo_zh, succeed
from tasks.labelled import written

QUICK = ("--epochs", "2", "--hidden", "7", "--batch-size", "5")
PLACES = ("北京", "上海", "广州")


def write_data(kind: str) -> Path:
    texts = [f"我{'不' * (number % 2)}喜欢{PLACES[number % 3]}的第{number}条街。" for number in range(60)]
    if kind == "tag":
        tags = dict.fromkeys("北上广", "B-LOC") | dict.fromkeys("京海州", "I-LOC")
        blocks = ["".join(f"{each} {tags.get(each, 'O')}\n" for each in text) for text in texts]
        return written(Path(), "names.conll", "\n".join(blocks))
    header = "sentence1,sentence2,label" if kind == "pairs" else "text,label"
    rows = [f"{text},{text[::-1]},{'不' in text}" if kind == "pairs" else f"{text},{'不' in text}" for text in texts]
    return written(Path(), f"{kind}.csv", "\n".join([header, *rows]) + "\n")


def fit(sample_run: SampleRun, kind: str, *options: str) -> Any:
    arguments = ("task", "fit", kind, write_data(kind), "--model", sample_run.model, "--output", f"my-{kind}")
    return elmo_zh(*arguments, *QUICK, *options)


def test_a_tagger_from_the_first_line_to_the_last(sample_run: SampleRun) -> None:
    answer = fit(sample_run, "tag")
    assert answer.status == 0, answer.stderr
    assert "60 examples; conll: BIO, one tag per character (" in answer.stderr
    assert "output:  my-tag" in answer.stdout.splitlines()
    assert answer.stdout.splitlines()[-1] == "Next: elmo-zh task predict file.txt --task my-tag"
    description = json.loads(Path("my-tag", "task.json").read_text(encoding="utf-8"))
    assert description["settings"]["inputs"] == ["word2vec", "elmo", "characters"]
    assert description["labels"] == ["O", "B-LOC", "I-LOC", "E-LOC", "S-LOC"]
    text = "我喜欢 上海。\n\n你好\n"
    Path("file.txt").write_text(text, encoding="utf-8")
    answer = succeed("task", "predict", "file.txt", "--task", "my-tag")
    records = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [record["text"] for record in records] == ["我喜欢 上海。", "", "你好"]
    for record in records:
        for span in record["spans"]:
            assert record["text"][span["start"] : span["end"]] == span["text"]
    piped = elmo_zh("task", "predict", "-", "--task", "my-tag", stdin=text.encode())
    assert piped.stdout == answer.stdout
    conll = elmo_zh("task", "predict", "file.txt", "--task", "my-tag", "--format", "conll").stdout
    blocks = [[line.split("\t") for line in block.splitlines()] for block in conll.split("\n\n")[:-1]]
    assert "".join(row[0] for row in blocks[0]) == "我喜欢 上海。"
    scored = elmo_zh("task", "score", "names.conll", "--task", "my-tag", "--json").result()
    assert (scored["metric"], scored["examples"]) == ("f1", 60)
    assert scored["by_label"]["LOC"]["count"] == 60


@pytest.mark.usefixtures("no_pictures")
def test_a_classifier_and_pairs(sample_run: SampleRun) -> None:
    result = fit(sample_run, "classify", "--seeds", "2", "--head", "bilstm", "--json").result()
    assert (result["metric"], result["inputs"]) == ("accuracy", ["word2vec", "elmo"])
    assert list(result["scores"]["seeds"]) == ["1", "2"]
    assert len(result["layer_weights"]) == 3
    assert sum(result["examples"].values()) == 60
    Path("file.txt").write_text("我不喜欢\t你。\n", encoding="utf-8")
    succeed("task", "predict", "file.txt", "--task", "my-classify", "--output", "out.tsv")
    chosen = ("--input-format", "tsv", "--field", "1")
    answer = elmo_zh("task", "predict", "file.txt", "--task", "my-classify", *chosen)
    assert json.loads(answer.stdout)["text"] == "我不喜欢"
    header, row = Path("out.tsv").read_text(encoding="utf-8").splitlines()
    assert header == "label\tprobability\ttext"
    assert row.endswith("\t我不喜欢\\t你。")
    assert elmo_zh("task", "predict", "file.txt", "--task", "my-classify", "--output", "out.csv").status == 0
    header, row = csv.reader(Path("out.csv").read_text(encoding="utf-8-sig").splitlines())
    assert (header[2], row[2]) == ("text", "我不喜欢\t你。")
    assert fit(sample_run, "pairs", "--inputs", "characters,word2vec").status == 0
    told = elmo_zh("task", "predict", "pairs.csv", "--task", "my-pairs", "--text-column", "1")
    assert (told.status, told.stdout) == (2, "")
    answer = elmo_zh("task", "predict", "pairs.csv", "--task", "my-pairs")
    first = json.loads(answer.stdout.splitlines()[0])
    assert (first["text1"], first["text2"]) == ("我喜欢北京的第0条街。", "。街条0第的京北欢喜我")
    assert set(first["probabilities"]) == {"True", "False"}
    piped = elmo_zh("task", "predict", "-", "--task", "my-pairs", stdin=Path("pairs.csv").read_bytes())
    assert piped.stdout == answer.stdout
    Path("both").mkdir()
    Path("both/a.csv").write_bytes(b"%PDF-1.7")
    written(Path(), "both/pairs.csv", Path("pairs.csv").read_text(encoding="utf-8"))
    in_folder = elmo_zh("task", "predict", "both", "--task", "my-pairs")
    assert in_folder.stdout == answer.stdout
    assert "Skipped (" in in_folder.stderr
    assert " examples: accuracy " in elmo_zh("task", "score", "pairs.csv", "--task", "my-pairs").stdout.splitlines()[0]


WRONG: list[tuple[str, tuple[str, ...], str]] = [
    ("tag", ("--inputs", "word2vec,glove"), "glove; expected word2vec,elmo,characters."),
    ("tag", ("--head", "linear", "--inputs", "elmo"), "tag --head linear and --inputs cannot be combined"),
    ("tag", ("--regression",), "tag and --regression cannot be combined"),
    ("pairs", ("--head", "linear"), "pairs and --head linear cannot be combined"),
    ("tag", ("--metric", "macro_f1"), "tag and --metric cannot be combined"),
    ("pairs", ("--text-column", "a"), "The number of text columns must be 2"),
    ("classify", ("--encoding", "nonsense"), "nonsense; expected auto or an encoding"),
]


@pytest.mark.parametrize(("kind", "options", "problem"), WRONG)
def test_wrong_usage(sample_run: SampleRun, kind: str, options: tuple[str, ...], problem: str) -> None:
    answer = fit(sample_run, kind, *options)
    assert answer.status == 2
    assert problem in " ".join(answer.stderr.split())
    assert not Path(f"my-{kind}").exists()


@pytest.mark.usefixtures("no_pictures")
def test_tags_of_words(sample_run: SampleRun) -> None:
    """Parts of speech: given words in training and scoring, the model's own words in prediction."""
    written(Path(), "pos.conll", "".join(f"我们 PN\n喜欢 VV\n{place} NR\n, PU\n\n" for place in PLACES * 12))
    arguments = ("task", "fit", "tag", "pos.conll", "--model", sample_run.model, "--output", "pos", *QUICK)
    answer = succeed(*arguments, "--dev", "pos.conll", "--test", "pos.conll")
    assert "conll: one tag per word (" in answer.stderr
    [line] = elmo_zh("task", "predict", "-", "--task", "pos", stdin="我们喜欢北京。".encode()).stdout.splitlines()
    found = json.loads(line)
    assert "".join(found["units"]) == found["text"]
    assert set(found["tags"]) <= {"PN", "VV", "NR", "PU"}
    assert elmo_zh("task", "score", "pos.conll", "--task", "pos", "--json").result()["metric"] == "accuracy"


def write_table(name: str, header: str, count: int = 60) -> Path:
    """Write texts with a longer remark, and two columns that could be the label."""
    rows = [
        f"我{'不' * (n % 2)}喜欢第{n}条街,街道的备注比街道长第{n}条,{n % 2},{'东' if n % 3 else '西'}"
        for n in range(count)
    ]
    return written(Path(), name, "\n".join([header, *rows]) + "\n")


@pytest.mark.usefixtures("no_pictures")
def test_columns_are_kept_and_mean_the_same_everywhere(sample_run: SampleRun) -> None:
    data = write_table("likes.csv", "原话,备注,答,方位")
    quick = ("--model", sample_run.model, "--epochs", "1", "--hidden", "5", "--inputs", "elmo")
    columns = ("--field", "原话", "--label-column", "答")
    succeed("task", "fit", "classify", data, *columns, "--output", "t", *quick)
    assert json.loads(Path("t", "task.json").read_text(encoding="utf-8"))["training"]["columns"] == ["原话", "答"]

    def scored(*options: str) -> str:
        return elmo_zh("task", "score", data, "--task", "t", *options).stdout

    assert scored() == scored("--field", "原话") == scored("--text-column", "原话", "--label-column", "答") != ""
    bare = written(Path(), "bare.csv", "日期,原话\n2024-10-01,我喜欢北京的街。\n2024-10-02,我不喜欢。\n")
    told = elmo_zh("task", "score", bare, "--task", "t").only_error()
    assert told.endswith("Next: elmo-zh task predict")
    told = elmo_zh("task", "predict", bare, "--task", "t", "--output", "labels.xlsx").only_error()
    assert "labels.xlsx; expected *." in told
    assert elmo_zh("task", "predict", bare, "--task", bare).only_error().startswith("bare.csv/task.json is missing")
    told = elmo_zh("task", "score", data, "--task", "t", "--label-column", "方位").only_error()
    assert "most labels are new to the task" in told

    def texts(path: Path, *options: str) -> list[str]:
        answer = elmo_zh("task", "predict", path, "--task", "t", *options)
        return [json.loads(line)["text"] for line in answer.stdout.splitlines()]

    moved = write_table("moved.csv", "原话,备注,答,方位", 3)
    assert texts(moved) == texts(moved, "--field", "原话") == texts(moved, "--text-column", "原话")
    assert texts(moved)[1] == "我不喜欢第1条街"
    assert texts(moved, "--text-column", "备注")[1] == "街道的备注比街道长第1条"
    lines = written(Path(), "moved.jsonl", '{"备注": "比原话长的备注", "原话": "我喜欢"}\n' * 2)
    assert texts(lines) == ["我喜欢"] * 2
    # A file without these names is read by its own.
    assert texts(write_table("other.csv", "text,备注,答,方位", 3))[1] == "我不喜欢第1条街"
