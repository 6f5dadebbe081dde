"""Comparing inputs: ELMo wins where only context tells, nothing where nothing tells; no training is repeated."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import SampleRun, contents_alone, elmo_zh, succeed
from messages import Heard
from tasks.labelled import WORDS, lines, written

from elmo_zh import ElmoEmbedder
from elmo_zh.config.task_settings import DataFiles, FitJob, HeadSettings, Reading, TrainSettings
from elmo_zh.errors import ElmoZhError, OptionError
from elmo_zh.run.job import run_job
from elmo_zh.tasks.compare import (
    BOTH,
    CRF,
    ELMO,
    LINEAR_ELMO,
    LINEAR_WORD2VEC,
    MAJORITY,
    TFIDF,
    TFIDF_ELMO,
    TFIDF_WORD2VEC,
    WORD2VEC,
    CompareJob,
    Comparison,
    Model,
    Run,
)


def write_tags(folder: Path, tag_of: Callable[[str, int], str], count: int = 80) -> Path:
    generator = np.random.default_rng(7)
    texts = ["".join(generator.choice(list("我他吃来"), size=5)) for _ in range(count)]
    blocks = ["".join(f"{each}\t{tag_of(text, place)}\n" for place, each in enumerate(text)) for text in texts]
    return written(folder, "tags.conll", "\n".join(blocks))


def fit_of(path: Path, kind: str = "classify", **changes: Any) -> FitJob:
    fit = FitJob(
        files=DataFiles(data=path),
        reading=Reading(kind=kind),
        settings=HeadSettings(kind=kind, hidden_dim=7, head="linear" if kind == "classify" else "bilstm"),
        training=TrainSettings(epochs=2, batch_size=8, learning_rate=0.02),
        num_seeds=2,
    )
    return replace(fit, **changes)


def compare_task(fit: FitJob, embedder: ElmoEmbedder, output: Path, **options: Any) -> Comparison:
    reporter = options.pop("reporter", Heard())
    return run_job(CompareJob.of(fit, embedder, output, reporter, **options), force=False, reporter=reporter)


def write_classes(folder: Path, label_of: Callable[[str], object], count: int = 300) -> Path:
    generator = np.random.default_rng(7)
    texts = ["".join(generator.choice(list(WORDS), size=6)) for _ in range(count)]
    rows = [{"text": text, "label": str(label_of(text))} for text in dict.fromkeys(texts)]
    return written(folder, "data.jsonl", lines(*rows))


NETWORKS = [WORD2VEC.name, ELMO.name, BOTH.name]


def test_elmo_wins_where_only_the_order_tells(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    """A linear model on the mean of word2vec cannot know what stands first; the biLM's vectors can."""
    texts = ["".join(order) for other in "吃苹果。来" for order in permutations("我他" + other)]
    rows = [{"text": text, "label": str(text.index("我") < text.index("他"))} for text in texts]
    path = written(tmp_path, "data.jsonl", lines(*rows) * 8)
    fit = fit_of(
        path,
        files=DataFiles(data=path, dev=path, test=path),
        training=TrainSettings(epochs=20, batch_size=10, learning_rate=0.05, patience=20),
        num_seeds=1,
    )
    fit = replace(fit, settings=replace(fit.settings, dropout=0.0))
    comparison = compare_task(fit, embedder, tmp_path / "found", shares=(1.0,))
    assert comparison.mean(WORD2VEC, 1.0) == pytest.approx(0.5, abs=0.05)
    assert comparison.difference(BOTH, WORD2VEC, 1.0).low > 0.05
    assert comparison.recommended == TFIDF  # pairs of characters tell the order too


def test_nothing_wins_where_nothing_tells(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    path = write_classes(tmp_path, lambda _: generator.integers(2), 200)
    comparison = compare_task(fit_of(path), embedder, tmp_path / "found", shares=(1.0, 0.5), folds=1)
    assert not comparison.difference(BOTH, WORD2VEC, 1.0).is_sure
    assert comparison.verdict().startswith("It is not certain that ELMo helps here: ")
    linear = [TFIDF, LINEAR_WORD2VEC, TFIDF_WORD2VEC, LINEAR_ELMO, TFIDF_ELMO]
    assert comparison.models == [MAJORITY, *linear, WORD2VEC, ELMO, BOTH]
    assert contents_alone(tmp_path / "found").keys() == {"comparison.json", "comparison.md"}
    assert not (tmp_path / "found.parts").exists()
    found = json.loads((tmp_path / "found" / "comparison.json").read_text(encoding="utf-8"))
    counts = {run["share"]: run["num_examples"] for run in found["runs"]}
    assert counts[0.5] == round(0.5 * counts[1.0])
    # Networks, on all labels only, and shares of the labels are drawn for each seed; the other rows are not.
    assert len(found["runs"]) == 6 * 1 + 6 * 2 + 3 * 2


def test_vectors_from_outside(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    """One row for each example tells the label; vectors of words tell it by the character 我, also within a word."""
    path = write_classes(tmp_path, lambda text: "我" in text, 200)
    labels = ["我" in line for line in path.read_text(encoding="utf-8").splitlines()]
    np.save(tmp_path / "rows.npy", np.array([[own, 1] for own in labels], np.float32))
    words = written(tmp_path, "words.txt", "2 3\n我 1 0 0\n他 0 0.5 0\n")
    both = {"rows": tmp_path / "rows.npy", "words": words}
    fit = fit_of(path, num_seeds=1)
    comparison = compare_task(fit, embedder, tmp_path / "found", shares=(1.0,), vectors=both)
    scores = {model.name: comparison.mean(model, 1.0) for model in comparison.models}
    assert scores["linear rows"] == scores["linear words"] == 1.0
    assert {"TF-IDF with rows", "TF-IDF with words"} <= scores.keys()
    tags = fit_of(write_tags(tmp_path, lambda text, place: text[place]), "tag", num_seeds=1)
    np.save(tmp_path / "few.npy", np.zeros((3, 2)))
    written(tmp_path, "cut.txt", words.read_text(encoding="utf-8").replace("2 3", "3 3"))
    written(tmp_path, "none.txt", "苏 1 0 0\n")
    written(tmp_path, "text.npy", "我 1 0 0\n")
    written(tmp_path, "empty.npy", "")
    np.save(tmp_path / "nan.npy", np.array([[own, np.nan if row == 2 else 1] for row, own in enumerate(labels)]))
    for wrong, vectors, problem in (
        (fit, "few.npy", "float64 (3, 2); expected float32 ("),
        (tags, "rows.npy", "and tag cannot be combined"),
        (fit, "cut.txt", "is damaged (its header announces 3 words, but it has 2)"),
        (fit, "none.txt", "none of its words occur in the data"),
        (fit, "text.npy", "text.npy is damaged ("),
        (fit, "empty.npy", "empty.npy is damaged ("),
        (fit, "nan.npy", "nan.npy is damaged ([2]: nan)"),
    ):
        with pytest.raises(ElmoZhError, match=re.escape(problem)):
            compare_task(wrong, embedder, tmp_path / "x", vectors={"a": tmp_path / vectors})


def test_tags_with_vectors_of_words_and_a_development_file_for_testing(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    write_tags(tmp_path, lambda text, place: text[place]).rename(tmp_path / "train.conll")
    write_tags(tmp_path, lambda text, place: text[place], 30).rename(tmp_path / "dev.conll")
    words, reporter = written(tmp_path / "vectors", "words.txt", "2 3\n我 1 0 0\n他 0 0.5 0\n"), Heard()
    fit = fit_of(tmp_path, "tag", num_seeds=1)
    comparison = compare_task(
        fit, embedder, tmp_path / "found", reporter=reporter, shares=(1.0,), vectors={"words": words}
    )
    assert any("dev.conll is used for testing" in note for note in reporter.notes)
    assert comparison.facts["examples"]["test"] == 30
    assert [model.name for model in comparison.models] == ["majority", CRF.name, "words", *NETWORKS]


def run_of(model: Model, right: list[int], share: float = 1.0, fold: int = 0, **others: Any) -> Run:
    score, rows = float(np.mean(right)), [[float(each), 1.0] for each in right]
    number = round(90 * share)
    return Run(model=model.name, share=share, seed=1, fold=fold, num_examples=number, score=score, rows=rows, **others)


def comparison_of(runs: dict[Model, Any], **others: Any) -> Comparison:
    """Return a comparison of models with runs, or with a list of which answers are right."""
    lists = {model: own if isinstance(own[0], Run) else [run_of(model, own)] for model, own in runs.items()}
    every = [run for own in lists.values() for run in own]
    return Comparison(models=[*runs], runs=every, name="n", metric="accuracy", seed=1, facts={}, **others)


MANY = 150  # Times that each figure of a test example is repeated


def test_the_tables_by_hand() -> None:
    told = comparison_of({WORD2VEC: [1] * 8, ELMO: [1, 0] * 4, BOTH: [0] * 8}).lines()
    assert "| [word2vec; ELMo] | 0.0000 |" in told
    assert "| word2vec | -100.00 (-100.00 to -100.00) |" in told
    assert "with 90 training examples (95% interval -100.0 to -100.0)." in told[-2]
    assert told[-1].startswith("Recommended: word2vec (1.0000), ")


@pytest.mark.parametrize(
    ("tfidf", "both", "judgement"),
    [
        ([1, 0, 1, 0], [1] * 4, "ELMo helps here: "),
        ([1] * 4, [1, 0, 1, 0], "ELMo does not help here: "),
        ([1, 0] * 2, [0, 1] * 2, "It is not certain that ELMo helps here: "),
    ],
)
def test_the_verdict_names_the_best_rival(tfidf: list[int], both: list[int], judgement: str) -> None:
    """word2vec is never right, ELMo alone always, and no rival."""
    rights = {TFIDF: tfidf * MANY, WORD2VEC: [0] * 4 * MANY, ELMO: [1] * 4 * MANY, BOTH: both * MANY}
    verdict = comparison_of(rights).verdict()
    assert verdict.startswith(judgement + "The lead of [word2vec; ELMo] over TF-IDF is ")


def test_the_mixture_is_compared_and_the_cheapest_good_model_recommended() -> None:
    """TF-IDF with word2vec is 10 points above TF-IDF, with ELMo 20; [word2vec; ELMo] is as good and costs more."""
    right = {TFIDF: 7, TFIDF_WORD2VEC: 8, TFIDF_ELMO: 9, WORD2VEC: 5, ELMO: 5, BOTH: 9}
    rights = {model: ([1] * each + [0] * (10 - each)) * MANY for model, each in right.items()}
    comparison = comparison_of(rights)
    assert comparison.verdict().startswith("ELMo helps here: The lead of TF-IDF with ELMo over TF-IDF with word2vec is")
    assert comparison.recommended == TFIDF_ELMO
    near = [1] * 9 * MANY + [0] * MANY
    near[:2] = 0, 0  # two of 1,500 wrong is not surely worse
    cheap = comparison_of({MAJORITY: near, **rights})
    assert cheap.recommendation().startswith("Recommended: majority (0.8987), ")
    assert "TF-IDF with ELMo (0.9000)" in cheap.recommendation()


def test_folds_are_one_test_of_all_examples() -> None:
    """Scores of the pooled examples: 1 of 4 and 3 of 4, not the means of the folds."""
    folds = {WORD2VEC: ([1], [0] * 3), ELMO: ([0], [0] * 3), BOTH: ([0], [1] * 3)}
    runs = {model: [run_of(model, own, fold=fold) for fold, own in enumerate(both)] for model, both in folds.items()}
    comparison = comparison_of(runs, num_folds=2)
    assert comparison.difference(BOTH, WORD2VEC, 1.0).value == pytest.approx(0.5)
    assert "| word2vec | 0.2500 (0.0000 - 1.0000) |" in comparison.lines()


def test_few_examples_are_cross_validated(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    path = write_classes(tmp_path, lambda text: text[0], 100)
    path.write_text(path.read_text(encoding="utf-8") * 2, encoding="utf-8")  # copies are in one fold
    fit = fit_of(path)
    fit = replace(fit, settings=replace(fit.settings, metric="macro_f1"))
    reporter = Heard()
    comparison = compare_task(fit, embedder, tmp_path / "found", reporter=reporter, shares=(1.0,))
    total = len(path.read_text(encoding="utf-8").splitlines())
    assert any(f"3-fold cross-validation tests on all {total} examples; --folds 1 would" in x for x in reporter.notes)
    for model in comparison.models:
        runs = comparison.of(model, 1.0)
        assert [(run.fold, run.seed) for run in runs] == [(0, 1), (1, 2), (2, 1)]
        assert sum(len(run.rows) for run in runs) == total
    own = replace(fit, files=DataFiles(data=path, test=path))
    with pytest.raises(OptionError, match="--folds and "):
        compare_task(own, embedder, tmp_path / "other", folds=2)


def test_the_next_command_reads_and_trains_as_the_comparison(
    sample_run: SampleRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_ZH_MODEL", str(sample_run.model))
    rows = [f"{number % 7 / 7},我{'不' * (number % 2)}喜欢第{number}条街。" for number in range(60)]
    Path("my likes.csv").write_text("\n".join(["how much,what", *rows]), encoding="gb18030")
    options = ("--label-column", "how much", "--text-column", "what", "--regression", "--encoding", "gb18030")
    training = ("--hidden", "5", "--epochs", "1", "--set", "embed.unknown=unk")
    only_here = ("--seeds", "1", "--shares", "1", "--limit", "20", "--output", "found")
    arguments = ("task", "compare", "classify", "my likes.csv", *options, *training, *only_here)
    for wrong in (("--shares", "1,x"), ("--shares", "2"), ("--vectors", "name"), ("--vectors", "a=missing.npy")):
        assert "; expected " in " ".join(elmo_zh(*arguments, *wrong).stderr.split())
    answer = succeed(*arguments)
    assert "| 100% of the labels (" in answer.stdout.splitlines()[0]
    program, *words = shlex.split(answer.stdout.splitlines()[-1].removeprefix("Next: "))
    assert program == "elmo-zh"
    assert words == [
        *("task", "fit", "classify", "my likes.csv", "--text-column", "what", "--label-column", "how much"),
        *("--encoding", "gb18030", "--regression", "--hidden", "5", "--epochs", "1", "--set", "embed.unknown=unk"),
        *("--output", "my-classify"),
    ]
    assert elmo_zh(*words).status == 0
