"""Probes of single layers: linear models as scikit-learn fits them, nearest neighbours by hand, and the tables."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import ROOT, SampleRun, elmo_zh, succeed
from messages import message_of
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from tasks.labelled import TAG, lines, written

from elmo_zh import ElmoEmbedder
from elmo_zh.config.task_settings import DataFiles
from elmo_zh.errors import CorpusError
from elmo_zh.run.job import run_job
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.tasks.probe import MarkedWord, nearest_senses, probe_tags, read_senses


def test_the_accuracy_of_each_layer_is_that_of_scikit_learn(embedder: ElmoEmbedder) -> None:
    """Tags depend on the word, on the word before, and on chance."""
    generator = np.random.default_rng(5)
    texts, tags = {}, {}
    for part, count in (("train", 120), ("dev", 60), ("test", 60)):
        numbers = generator.integers(6, size=(count, 6))
        texts[part] = [["我吃苹果他来"[number] for number in row] for row in numbers]
        tags[part] = (numbers + (np.roll(numbers, 1, axis=1) > 4)) % 3
        tags[part][generator.random(numbers.shape) < 0.1] = 0
        blocks = ["".join(map("{} {}\n".format, *each)) for each in zip(texts[part], tags[part], strict=True)]
        written(Path("bank"), f"{part}.conll", "\n".join(blocks))
    files, quiet = DataFiles(data=Path("bank")), SilentReporter()
    job = probe_tags(files, TAG, embedder, Path("found"), word2vec=None, reporter=quiet)
    report = run_job(job, force=False, reporter=quiet)
    layers = {part: [each.astype(np.float16) for each in embedder.embed_tokens(own)] for part, own in texts.items()}
    assert [row.name for row in report.rows[:2]] == ["most frequent tag of the word", "word2vec"]
    for layer, probed in enumerate(report.rows[2:]):
        vectors = {part: np.concatenate([each[layer] for each in own]).astype(float) for part, own in layers.items()}
        reference = make_pipeline(StandardScaler(), Normalizer(), LogisticRegression(C=10, tol=1e-6, max_iter=2000))
        reference.fit(vectors["train"], tags["train"].ravel())
        expected = [reference.score(vectors[part], tags[part].ravel()) for part in ("dev", "test")]
        # One of 360 words may differ.
        assert [probed.dev_accuracy, probed.accuracy] == pytest.approx(expected, abs=0.004)


def test_nearest_neighbours_by_hand() -> None:
    marked = [MarkedWord(*pair, "", 0) for pair in ("a1", "a2", "a1", "b1", "b2")]
    vectors = np.array([[1, 0], [0, 5], [3, 0.1], [1, 1], [-1, -1]], np.float32)
    # Within a word only: the first a is nearest to the third, the second to the third by the angle, not by length.
    assert nearest_senses(marked, vectors) == ["1", "1", "1", "2", "1"]


def test_marked_words_of_json_lines() -> None:
    changes: list[dict[str, Any]] = [{}, {"context": [" ", "花"], "sense": "flower"}, {"sense": ["a", "b"]}]
    path = written(Path(), "senses.jsonl", lines(*(OBJECT | change for change in changes)))
    found = read_senses(path, None)
    assert [(each.sense, each.text, each.start) for each in found] == [
        ("spend", ("我", "花", "。"), 1),
        ("flower", ("花",), 0),
        ("a|b", ("我", "花", "。"), 1),
    ]


TABLE = "file\tline\tstart\tend\tword\tsense\n"
OBJECT = {"context": ["我", "<target>", "。"], "target_word": "花", "target_position": 1, "sense": ["spend"]}
WRONG = [
    ("word\tsense\n花\tflower\n", "Each line needs: file, line, start, end, word, sense"),
    (TABLE + "a.txt\t0\tx\t2\t花\tf\n", "line 2 does not mark a word"),
    (TABLE + "a.txt\t0\t0\t1\t花\tf\n", "line 0 of a.txt has '我' at characters 0 to 1"),
    (TABLE + "a.txt\t0\t1\t2\t花\tf\n" + "a.txt\t9\t1\t2\t花\tf\n", "line 3 does not mark a word"),
    (TABLE + "b.txt\t0\t1\t2\t花\tf\n", "b.txt"),
    *(
        (lines(OBJECT, OBJECT | change), f"line 2 does not mark a word ({problem}")
        for change, problem in [
            ({"target_position": -1}, "target_position -1 is no position in context"),
            ({"target_position": 0}, "'我' at target_position is not the word '花'"),
            ({"sense": []}, "'<target>' at target_position"),
        ]
    ),
]


@pytest.mark.parametrize(("content", "problem"), WRONG)
def test_a_wrong_mark_is_one_line(content: str, problem: str) -> None:
    Path("a.txt").write_text("我花钱。\n", encoding="utf-8")
    Path("senses").write_text(content, encoding="utf-8")
    assert problem in message_of(CorpusError, lambda: read_senses(Path("senses"), None))


def test_senses_from_the_first_line_to_the_last(sample_run: SampleRun) -> None:
    arguments = ("task", "probe", "senses", ROOT / "data" / "senses.tsv", "--model", sample_run.model)
    answer = succeed(*arguments, "--text", ROOT / "data" / "sample", "--output", "found")
    assert "558 occurrences of words with several senses" in answer.stderr
    names = [line.split("|")[1].strip() for line in answer.stdout.splitlines() if line.startswith("| ")]
    assert names[2:] == [
        "most frequent sense of the word", "word2vec", "layer 0", "layer 1", "layer 2",
    ]  # fmt: skip
    found = json.loads(Path("found", "probe.json").read_text(encoding="utf-8"))
    layers = {row["layer"]: row["accuracy"] for row in found["rows"] if row["layer"] is not None}
    assert layers[found["best_layer"]] == max(layers.values())
    assert answer.stdout.splitlines()[-1].endswith(f"--layers {found['best_layer']}")


def test_tags_that_mark_spans_are_refused(sample_run: SampleRun) -> None:
    rows = "".join(f"我 O\n{chr(0x4E00 + number)} B-X\n\n" for number in range(90))
    written(Path(), "names.conll", rows)
    told = elmo_zh("task", "probe", "tags", "names.conll", "--model", sample_run.model, "--output", "x").only_error()
    assert told.startswith("names.conll: the tags mark spans. Use tags of single words")
