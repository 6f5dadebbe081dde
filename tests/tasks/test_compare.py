"""Comparing inputs: ELMo wins where only context tells, nothing where nothing tells; no training is repeated."""

import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import SampleRun, changed_json, contents_alone, elmo_zh, succeed
from drawn_bundles import install_model
from messages import Heard, message_of
from tasks.labelled import WORDS, lines, written

from elmo_zh import ElmoEmbedder
from elmo_zh.bundle.find_bundle import find_installed
from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.config.task_settings import DataFiles, FitJob, HeadSettings, Reading, TrainSettings
from elmo_zh.errors import BundleError, OptionError
from elmo_zh.tasks.compare import CompareJob, _find_ancestor, compare_task
from elmo_zh.tasks.comparison import (
    ANCESTOR,
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
    Comparison,
    Run,
)
from elmo_zh.tasks.train_head import train_head


def write_tags(folder: Path, tag_of: Callable[[str, int], str], count: int = 80) -> Path:
    generator = np.random.default_rng(7)
    texts = ["".join(generator.choice(list("我他吃来"), size=5)) for _ in range(count)]
    blocks = ["".join(f"{each}\t{tag_of(text, place)}\n" for place, each in enumerate(text)) for text in texts]
    return written(folder, "tags.conll", "\n".join(blocks))


def food_tag(text: str, place: int) -> str:
    return "S-X" if text[place] == "吃" else "O"


def job_of(path: Path, kind: str = "classify", **changes: Any) -> CompareJob:
    fit = FitJob(
        files=DataFiles(data=path),
        reading=Reading(kind=kind),
        settings=HeadSettings(kind=kind, hidden_dim=7, head="linear" if kind == "classify" else "bilstm"),
        training=TrainSettings(epochs=2, batch_size=8, learning_rate=0.02),
        num_seeds=2,
    )
    return replace(CompareJob(fit=fit, shares=(1.0, 0.5), folds=1), **changes)


def write_classes(folder: Path, label_of: Callable[[str], object], count: int = 300) -> Path:
    generator = np.random.default_rng(7)
    texts = ["".join(generator.choice(list(WORDS), size=6)) for _ in range(count)]
    rows = [{"text": text, "label": str(label_of(text))} for text in dict.fromkeys(texts)]
    return written(folder, "data.jsonl", lines(*rows))


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seeds: list[int] = []

    def train(*args: Any, **values: Any) -> Any:
        seeds.append(values["seed"])
        return train_head(*args, **values)

    monkeypatch.setattr("elmo_zh.tasks.prepared_task.train_head", train)
    return seeds


@pytest.mark.usefixtures("no_pictures")
def test_elmo_wins_where_only_the_order_tells(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    """A linear model on the mean of word2vec cannot know what stands first; the biLM's vectors can."""
    texts = ["".join(order) for other in "吃苹果。来" for order in permutations("我他" + other)]
    rows = [{"text": text, "label": str(text.index("我") < text.index("他"))} for text in texts]
    path = written(tmp_path, "data.jsonl", lines(*rows) * 8)
    job = job_of(path, shares=(1.0,))
    fit = replace(
        job.fit,
        files=DataFiles(data=path, dev=path, test=path),
        settings=replace(job.fit.settings, dropout=0.0),
        training=TrainSettings(epochs=20, batch_size=10, learning_rate=0.05, patience=20),
        num_seeds=1,
    )
    comparison = compare_task(replace(job, fit=fit), embedder, tmp_path / "found")
    [word2vec] = comparison.of_setting(WORD2VEC, 1.0)
    assert word2vec.score == pytest.approx(0.5, abs=0.05)
    assert comparison.differences[BOTH][1.0].low > 0.05
    # Pairs of characters tell the order too.
    assert ": The score of TF-IDF with ELMo is 0.0 points of accuracy above TF-IDF with 240" in comparison.verdict()
    assert comparison.recommended() == TFIDF  # linear ELMo is always right too


def test_nothing_wins_where_nothing_tells(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    path = write_classes(tmp_path, lambda _: generator.integers(2), 200)
    comparison = compare_task(job_of(path), embedder, tmp_path / "found")
    assert not comparison.differences[BOTH][1.0].is_sure
    assert comparison.verdict().startswith("It is not certain that ELMo helps here: ")
    linear = [TFIDF, LINEAR_WORD2VEC, TFIDF_WORD2VEC, LINEAR_ELMO, TFIDF_ELMO]
    assert comparison.models == [MAJORITY, *linear, WORD2VEC, ELMO, BOTH]
    assert contents_alone(tmp_path / "found").keys() == {"comparison.json", "comparison.md", "curves.png"}
    assert not (tmp_path / "found.parts").exists()
    found = json.loads((tmp_path / "found" / "comparison.json").read_text(encoding="utf-8"))
    counts = {run["share"]: run["num_examples"] for run in found["runs"]}
    assert counts[0.5] == round(0.5 * counts[1.0])
    # Networks, on all labels only, and shares of the labels are drawn for each seed; the other rows are not.
    assert len(found["runs"]) == 6 * 1 + 6 * 2 + 3 * 2


@pytest.mark.usefixtures("no_pictures")
def test_the_development_file_is_tested_on_if_there_is_no_other(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    path = write_tags(tmp_path, lambda text, place: text[place])
    path.rename(tmp_path / "train.conll")
    write_tags(tmp_path, lambda text, place: text[place], 30).rename(tmp_path / "dev.conll")
    reporter = Heard()
    job = job_of(tmp_path, "tag", shares=(1.0,))
    comparison = compare_task(
        replace(job, fit=replace(job.fit, num_seeds=1)), embedder, tmp_path / "found", reporter=reporter
    )
    assert any("dev.conll is used for testing" in note for note in reporter.notes)
    assert comparison.facts["examples"]["test"] == 30


def child_of(parent: ElmoEmbedder, folder: Path) -> ElmoEmbedder:
    """The same weights in a bundle that says where it started, and has no word2vec vectors."""
    layout = BundleLayout(Path(shutil.copytree(parent.bundle.path, folder)))
    layout.word2vec.unlink()
    with changed_json(layout.info) as info:
        del info["digests"][layout.word2vec.name]
        info["origin"]["started_from"] = {"digest": parent.bundle.digest, "tokens": 7, "origin": {}}
    return ElmoEmbedder.load(folder, "cpu")


def test_an_ancestor_is_found_or_named(embedder: ElmoEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tags(tmp_path, lambda text, place: text[place])
    wrong = job_of(path, "tag", ancestor=embedder.bundle.path)
    told = message_of(OptionError, lambda: compare_task(wrong, embedder, tmp_path / "found"))
    assert told.endswith(" was not adapted from another model. Leave out --ancestor.")
    installed = install_model(tmp_path, "toy", monkeypatch)
    toy = ElmoEmbedder.load(installed, "cpu")
    assert find_installed(toy.bundle.digest) == installed
    assert find_installed("sha256:0") is None

    child = child_of(embedder, tmp_path / "child")
    reporter = Heard()
    told = message_of(BundleError, lambda: compare_task(job_of(path, "tag"), child, tmp_path / "x", reporter=reporter))
    assert "has no word2vec vectors" in told
    [note] = reporter.notes
    assert note.endswith("--ancestor BUNDLE")
    backoff = ElmoEmbedder(child.bundle, "cpu", "bfloat16", unknown="backoff")
    found = _find_ancestor(wrong, backoff, reporter)
    assert (found.bundle.digest, found.precision, found.unknown) == (embedder.bundle.digest, "bfloat16", "backoff")
    told = message_of(OptionError, lambda: compare_task(replace(wrong, ancestor=installed), child, tmp_path / "x"))
    assert told.endswith(f" was adapted from model {embedder.bundle.digest}. Leave out --ancestor.")
    # The ancestor's vectors are those of the same weights; of word2vec the child has none.
    few = job_of(path, "tag", ancestor=embedder.bundle.path, shares=(1.0,))
    comparison = compare_task(replace(few, fit=replace(few.fit, num_seeds=1)), child, tmp_path / "y", reporter=Heard())
    assert comparison.models == [MAJORITY, CRF, WORD2VEC, ELMO, BOTH, ANCESTOR]
    assert comparison.differences[ANCESTOR] == comparison.differences[BOTH]
    with changed_json(installed / "bundle.json") as info:  # a published model is not asked for its ancestor
        info["origin"]["started_from"] = {"digest": "sha256:0"}
    assert _find_ancestor(job_of(path, "tag"), ElmoEmbedder.load(installed, "cpu"), reporter) is None
    assert reporter.notes == [note]


def run_of(model: str, right: list[int], share: float = 1.0, fold: int = 0, **others: Any) -> Run:
    rows = np.array([[each, 1] for each in right], float)
    score = float(np.mean(right))
    others = {"dev_score": None, "seconds": 60.0, **others}
    return Run(
        model=model, share=share, seed=1, fold=fold, num_examples=round(90 * share), score=score, rows=rows, **others
    )


def comparison_of(*runs: Run, **others: Any) -> Comparison:
    facts = {"vectors_seconds": 90.0, "training": {"epochs": 30}}
    return Comparison(runs=runs, name="n", metric="accuracy", seed=1, facts=facts, **others)


MANY = 150  # Times that each figure of a test example is repeated, so that none is too few


def test_a_verdict_of_harm_and_the_tables_by_hand() -> None:
    runs = [run_of(WORD2VEC, [1] * 8), run_of(ELMO, [1, 0] * 4), run_of(BOTH, [0] * 8)]
    comparison = comparison_of(*runs)
    assert comparison.verdict() == (
        "ELMo does not help here: The score of [word2vec; ELMo] is 100.0 points of accuracy below word2vec with 90"
        " training examples (95% interval -100.0 to -100.0)."
    )
    told = comparison.lines()
    assert "| [word2vec; ELMo] | 0.0000 |" in told
    assert "| [word2vec; ELMo] | -100.00 (-100.00 to -100.00) |" in told
    # Baselines and word2vec need none of the 1.5 minutes of ELMo's vectors.
    assert told[-1] == "Recommended with 90 training examples: word2vec (1.0000, 1.0 minutes)."
    trainings = list(comparison.trainings())
    assert "| word2vec | 90 | 1 | 1 | 1.0000 | 1.00 |" in trainings[0].splitlines()
    assert trainings[-1] == "ELMo's vectors were computed once for all training runs, in 1.50 minutes."
    assert Run.from_json(json.loads(json.dumps(runs[1].to_json()))).rows.tolist() == runs[1].rows.tolist()


def test_networks_that_learned_only_the_most_frequent_label_are_named() -> None:
    runs = [run_of(MAJORITY, [1, 1, 0]), run_of(WORD2VEC, [0, 1, 1]), run_of(ELMO, [1, 1, 1]), run_of(BOTH, [0] * 3)]
    comparison = comparison_of(*runs)
    hint = comparison.lines()[-4]
    assert hint.startswith("Models no more accurate than always predicting the most frequent label: word2vec. If some")
    assert hint.endswith(" more frequent than others, add: --metric macro_f1")
    [few] = replace(comparison, runs=[runs[0], *runs[2:]], metric="macro_f1").hints()
    assert few.startswith("3 test examples can only show large differences")


@pytest.mark.parametrize(
    ("tfidf", "both", "judgement"),
    [
        (([1, 0, 1, 0], [0] * 4), ([1] * 4, [1] * 4), "ELMo helps here: "),
        (([1] * 4, [0] * 4), ([1] * 4, [1] * 4), "ELMo helps here only with 27 training examples: "),
        (([0] * 4, [1] * 4), ([1] * 4, [1, 0, 1, 0]), "ELMo helps here only with 90 training examples: "),
        (([1] * 4, [1] * 4), ([1] * 4, [1, 1, 1, 0]), "ELMo does not help here: "),
        (([1, 0] * 2, [0, 1] * 2), ([0, 1] * 2, [1, 0] * 2), "It is not certain that ELMo helps here: "),
    ],
)
def test_the_verdict_looks_at_every_share_and_names_the_best_rival(
    tfidf: tuple[list[int], ...], both: tuple[list[int], ...], judgement: str
) -> None:
    """With 90 and 27 training examples; word2vec is never right, ELMo alone always."""
    shares = (1.0, 0.3)
    runs = [run_of(TFIDF, right * MANY, share) for share, right in zip(shares, tfidf, strict=True)]
    runs += [run_of(BOTH, right * MANY, share) for share, right in zip(shares, both, strict=True)]
    runs += [run_of(model, [model == ELMO] * 4 * MANY, share) for share in shares for model in (WORD2VEC, ELMO)]
    comparison = comparison_of(*runs)
    verdict = comparison.verdict()
    assert verdict.startswith(judgement + "The score of [word2vec; ELMo] is ")
    ties = [sum(each) == 0 for each in tfidf]
    assert [" TF-IDF with " in part for part in verdict.split("; ")[-2:]] == [not tie for tie in ties]
    assert not list(comparison.hints())


def test_hints_on_the_ancestor_the_epochs_and_the_number_of_tests() -> None:
    network = {"dev_score": 0.5}
    runs = [run_of(WORD2VEC, [0] * 4, is_unfinished=True, **network), run_of(ELMO, [0] * 4, **network)]
    runs += [run_of(BOTH, [1, 0, 1, 0], **network), run_of(ANCESTOR, [0, 1, 0, 1], **network)]
    adaptation, epochs, few = comparison_of(*runs).hints()
    assert adaptation.startswith("It is not certain that the adaptation helps: ")
    assert "(95% interval -100.0 to +100.0, including 0)" in adaptation
    assert epochs.startswith("1 of 4 training runs ended at the limit of 30 epochs")
    assert few.startswith("4 test examples")
    better = comparison_of(*runs[:2], run_of(BOTH, [1] * 4), run_of(ANCESTOR, [0] * 4))
    assert next(iter(better.hints())).startswith("The adaptation helps: ")


def test_the_mixture_is_compared_and_the_cheapest_good_model_recommended() -> None:
    """TF-IDF with word2vec is 10 points above TF-IDF, with ELMo 20; [word2vec; ELMo] is as good and takes longer."""
    right = {TFIDF: 7, TFIDF_WORD2VEC: 8, TFIDF_ELMO: 9, WORD2VEC: 5, ELMO: 5, BOTH: 9}
    runs = [run_of(model, ([1] * each + [0] * (10 - each)) * MANY) for model, each in right.items()]
    comparison = comparison_of(*runs[:-1], replace(runs[-1], seconds=240.0))
    first, second = comparison.verdict().split(". ")
    assert first.startswith(
        "ELMo helps here: The score of TF-IDF with ELMo is 20.0 points of accuracy above TF-IDF with"
    )
    assert second.startswith(
        "The score of TF-IDF with ELMo is 10.0 points of accuracy above TF-IDF with word2vec with 90"
    )
    assert comparison.recommendation().endswith(" 90 training examples: TF-IDF with ELMo (0.9000, 2.5 minutes).")
    assert comparison.options_of_fit() == ()
    alike = comparison_of(*(run_of(model, [1] * 9 * MANY + [0] * MANY) for model in right))
    assert (alike.recommended(), alike.options_of_fit()) == (TFIDF, ("--inputs", "word2vec"))
    near = [1] * 9 * MANY + [0] * MANY
    near[:2] = 0, 0  # two of 1,500 wrong is not surely worse
    cheap = comparison_of(run_of(MAJORITY, near, seconds=0.0), *runs)
    assert "majority (0.8987, 0.0 minutes)" in cheap.recommendation()
    assert "TF-IDF with ELMo (0.9000, 2.5 minutes)" in cheap.recommendation()


def test_the_crf_of_tags_is_a_rival_and_may_be_recommended() -> None:
    runs = [run_of(model, [1, right] * MANY) for model, right in ((WORD2VEC, 0), (CRF, 1), (ELMO, 1), (BOTH, 1))]
    comparison = comparison_of(*runs[1:2], runs[0], *runs[2:])
    assert " above CRF on character n-grams with 90 training examples " in comparison.verdict()
    assert (comparison.recommended(), comparison.options_of_fit()) == (CRF, ("--head", "linear"))


def test_folds_are_one_test_of_all_examples() -> None:
    """Scores of the pooled examples: 1 of 4 and 3 of 4, not the means of the folds."""
    runs = [run_of(model, [right], fold=0) for model, right in ((WORD2VEC, 1), (ELMO, 0), (BOTH, 0))]
    runs += [run_of(model, right, fold=1) for model, right in ((WORD2VEC, [0] * 3), (ELMO, [0] * 3), (BOTH, [1] * 3))]
    comparison = comparison_of(*runs, num_folds=2)
    assert comparison.differences[BOTH][1.0].value == pytest.approx(0.5)
    assert "| word2vec | 0.2500 (0.0000 to 1.0000) |" in comparison.lines()


@pytest.mark.usefixtures("no_pictures")
def test_few_examples_are_cross_validated(embedder: ElmoEmbedder, tmp_path: Path, trained: list[int]) -> None:
    path = write_classes(tmp_path, lambda text: text[0], 100)
    path.write_text(path.read_text(encoding="utf-8") * 2, encoding="utf-8")  # copies are in one fold
    job = job_of(path, shares=(1.0,), folds=None)
    job = replace(job, fit=replace(job.fit, settings=replace(job.fit.settings, metric="macro_f1")))
    reporter = Heard()
    comparison = compare_task(job, embedder, tmp_path / "found", reporter=reporter)
    total = len(path.read_text(encoding="utf-8").splitlines())
    assert any(f"3-fold cross-validation tests on all {total} examples; --folds 1 would" in x for x in reporter.notes)
    assert trained == [1, 2, 1] * 3
    for model in comparison.models:
        runs = comparison.of_setting(model, 1.0)
        assert [run.fold for run in runs] == [0, 1, 2]
        assert sum(len(run.rows) for run in runs) == total
    own = replace(job, fit=replace(job.fit, files=DataFiles(data=path, test=path)), folds=2)
    with pytest.raises(OptionError, match="--folds divides a single file"):
        compare_task(own, embedder, tmp_path / "other")


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
    for shares in ("0", "1,x", "1,1"):
        assert "different fractions" in " ".join(elmo_zh(*arguments, "--shares", shares).stderr.split())
    answer = succeed(*arguments)
    assert "| 100% of the labels (" in answer.stdout.splitlines()[0]
    assert Path("found", "curves.png").stat().st_size > 5000
    program, *words = shlex.split(answer.stdout.splitlines()[-1].removeprefix("Next: "))
    assert program == "elmo-zh"
    assert words == [
        *("task", "fit", "classify", "my likes.csv", "--text-column", "what", "--label-column", "how much"),
        *("--encoding", "gb18030", "--regression", "--hidden", "5", "--epochs", "1", "--set", "embed.unknown=unk"),
        *("--output", "my-classify"),
    ]
    assert elmo_zh(*words).status == 0
