"""A mixture of linear models and a network: what it keeps, that it predicts as it was scored, and its files."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import contents_alone
from messages import message_of
from tasks.labelled import changed, drawn_texts, lines, load, written

from elmo_zh import ElmoEmbedder
from elmo_zh.config.task_settings import DataFiles, FitJob, HeadSettings, Reading, TrainSettings
from elmo_zh.errors import RunError
from elmo_zh.tasks.fit import fit_task
from elmo_zh.tasks.mixture import choose_members, choose_weights, mix
from elmo_zh.tasks.predictions import ClassPrediction
from elmo_zh.tasks.scores import score_predictions
from elmo_zh.tasks.task_model import TaskModel


def accuracy(classes: np.ndarray, logs: np.ndarray) -> float:
    return float((logs.argmax(axis=1) == classes).mean())


def logs_of(right: float, classes: np.ndarray) -> np.ndarray:
    """Return log-probabilities that give the true one of two classes this probability."""
    found: np.ndarray = np.where(np.eye(2)[classes] == 1, np.log(right), np.log(1 - right))
    return found


def test_members_earn_their_place_by_hand() -> None:
    """The second knows what the first does not; a third that knows nothing is left out."""
    classes = np.arange(400) % 2
    half = np.where(np.arange(400)[:, None] < 200, logs_of(0.9, classes), logs_of(0.5, classes))
    other = np.where(np.arange(400)[:, None] < 200, logs_of(0.5, classes), logs_of(0.8, classes))
    rows = np.arange(400)
    offers = [("characters", half, rows), ("elmo", other, rows), ("word2vec", logs_of(0.5, classes), rows)]
    weights, [first, second, third] = choose_members(offers, classes, accuracy)
    assert weights.keys() == {"characters", "elmo"}
    assert [*weights.values()] == pytest.approx(choose_weights([half, other], classes), abs=1e-4)
    assert weights["characters"] != weights["elmo"]
    assert (first.without, first.weight) == (None, weights["characters"])
    assert (second.num_labels, second.weight) == (400, weights["elmo"])
    assert (third.weight, third.without, third.together) == (0.0, 1.0, 1.0)


def test_a_gain_that_chance_explains_earns_no_place() -> None:
    """Of two members of equal quality and independent errors the second helps; on six labels that is not certain."""
    generator = np.random.default_rng(5)
    for count, is_kept in ((6, False), (3000, True)):
        classes = generator.integers(2, size=count)
        offers = []
        for name in ("characters", "elmo"):
            right = np.where(generator.random(count) < 0.8, 0.8, 0.2)[:, None]
            own = np.eye(2)[classes] == 1
            offers.append((name, np.log(np.where(own, right, 1 - right)), np.arange(count)))
        assert ("elmo" in choose_members(offers, classes, accuracy)[0]) == is_kept


def test_a_network_is_judged_where_it_has_not_learned_and_mixes_with_all() -> None:
    """Adding it to a mixture multiplies the weights of the others; mixing at once gives the same probabilities."""
    classes, places = np.arange(300) % 2, np.arange(300)[:, None] % 3
    logs = {
        name: np.where(places == number, logs_of(0.95, classes), logs_of(0.5, classes))
        for number, name in enumerate(("characters", "elmo", "bilstm"))
    }
    rows = np.arange(200, 300)
    linear = [(name, logs[name], np.arange(300)) for name in ("characters", "elmo")]
    before, _ = choose_members(linear, classes, accuracy)
    weights, [*_, judged] = choose_members([*linear, ("bilstm", logs["bilstm"][rows], rows)], classes, accuracy)
    assert weights.keys() == logs.keys()
    assert weights["characters"] / weights["elmo"] == pytest.approx(before["characters"] / before["elmo"], rel=1e-3)
    together = mix([logs[name][rows] for name in weights], [*weights.values()])
    assert (judged.num_labels, judged.together) == (100, accuracy(classes[rows], together))


def write_task(folder: Path, count: int = 150) -> Path:
    """Texts whose class one character tells, with a third class that two tell together."""
    texts = [text * 2 for text in drawn_texts(count)]
    rows = [{"text": text, "label": f"{('我' in text) + ('苹' in text)}"} for text in texts]
    return written(folder, "data.jsonl", lines(*rows))


def job_of(path: Path, kind: str = "classify") -> FitJob:
    return FitJob(
        files=DataFiles(data=path),
        reading=Reading(kind=kind),
        settings=HeadSettings(kind=kind, inputs=("characters",), hidden_dim=7),
        training=TrainSettings(epochs=1, batch_size=16),
    )


@pytest.fixture(scope="module")
def fitted(embedder: ElmoEmbedder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixture")
    fit_task(job_of(write_task(folder, 600)), embedder, folder / "task")
    return folder / "task"


def test_a_mixture_predicts_as_it_was_scored_and_without_what_it_left_out(fitted: Path) -> None:
    """Some 60 development labels are too few to judge the network, so it is not in the folder."""
    names = {"confusion.png", "curve.png", "linear.safetensors", "metrics.jsonl", "task.json"}
    assert set(contents_alone(fitted)) == names
    model = TaskModel.load(fitted, device="cpu")
    scores = model.description.scores
    assert "characters" in model.description.members
    assert "bilstm" not in [each["name"] for each in scores["members"]]
    assert scores["members"][0]["num_labels"] == sum(
        model.description.training[f"{part}_examples"] for part in ("train", "dev")
    )
    assert scores["test"]["accuracy"] > 0.9
    found = [each for each in model.predict(["我苹", "我来", "他来", ""]) if isinstance(each, ClassPrediction)]
    assert [each.label for each in found[:3]] == ["2", "1", "0"]
    assert all(sum(each.probabilities.values()) == pytest.approx(1) for each in found)


@pytest.mark.usefixtures("no_pictures")
def test_a_network_that_is_kept_is_saved_and_mixed(
    embedder: ElmoEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_zh.tasks.mixture._STANDARD_ERRORS", -np.inf)
    monkeypatch.setattr("elmo_zh.tasks.mixture._FEWEST_LABELS", 1)
    monkeypatch.setattr("elmo_zh.tasks.mixture.choose_weights", lambda logs, classes: (0.5, 0.5))
    job = job_of(write_task(tmp_path))
    report = fit_task(replace(job, settings=replace(job.settings, inputs=("word2vec",))), embedder, tmp_path / "task")
    assert report.description.members.keys() == {"characters", "word2vec", "bilstm"}
    assert report.description.members["bilstm"] == 0.5
    mixture = TaskModel.load(tmp_path / "task", device="cpu")
    texts = drawn_texts(5)
    # Each member alone, by the same folder.
    logs = []
    for name in report.description.members:
        path = Path(shutil.copytree(tmp_path / "task", tmp_path / name))
        changed(path, lambda found, name=name: found.update(members={name: 1.0}))
        logs.append(np.log(probabilities(TaskModel.load(path, device="cpu"), texts)))
    expected = np.exp(mix(logs, [*report.description.members.values()]))
    assert probabilities(mixture, texts) == pytest.approx(expected, abs=1e-6)


def write_tags(folder: Path) -> Path:
    """The tag of a character is the one before it, which the network does not learn in an epoch."""
    texts = [text * 2 for text in drawn_texts(200)]
    blocks = ["".join(f"{own}\t{before}\n" for before, own in pairwise(f"。{text}")) for text in texts]
    return written(folder, "tags.conll", "\n".join(blocks))


@pytest.mark.usefixtures("no_pictures")
def test_a_tagger_keeps_a_crf_that_adds_and_predicts_as_it_was_scored(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    """Both are one network in one file."""
    job = job_of(write_tags(tmp_path), "tag")
    report = fit_task(job, embedder, tmp_path / "task")
    assert "linear.safetensors" not in contents_alone(tmp_path / "task")
    network, crf = report.description.scores["members"]
    assert (network["name"], crf["name"], network["weight"] + crf["weight"]) == ("bilstm", "crf", 1.0)
    assert crf["weight"] > 0.5
    assert crf["without"] == network["score"] < crf["together"]
    assert report.description.scores["seeds"]["1"]["test"] < report.description.scores["test"]["accuracy"]
    examples = load(job.files, job.reading).test
    predictions = TaskModel.load(tmp_path / "task", device="cpu").predict_examples(examples)
    assert score_predictions(examples, predictions, marks_spans=False) == report.description.scores["test"]


@pytest.mark.usefixtures("no_pictures")
def test_a_tagger_without_a_crf_is_the_network_alone(
    embedder: ElmoEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_zh.tasks.mixture._STANDARD_ERRORS", np.inf)
    job = job_of(write_tags(tmp_path), "tag")
    mixed = fit_task(job, embedder, tmp_path / "mixed")
    alone = fit_task(replace(job, settings=replace(job.settings, head="bilstm")), embedder, tmp_path / "alone")
    assert [each["weight"] for each in mixed.description.scores["members"]] == [1.0, 0.0]
    assert mixed.description.settings == alone.description.settings
    first, second = (contents_alone(report.output)["head.safetensors"] for report in (mixed, alone))
    assert first == second


def probabilities(model: TaskModel, texts: list[str]) -> np.ndarray:
    found: list[Any] = model.predict(texts)
    return np.array([[each.probabilities[label] for label in model.description.labels] for each in found])


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: (path / "linear.safetensors").unlink(), "linear.safetensors is missing"),
    (lambda path: (path / "linear.safetensors").write_bytes(b"x" * 99), "its digest"),
    (lambda path: changed(path, lambda f: f.update(members={"characters": 2.0})), "is damaged"),
    (lambda path: changed(path, lambda f: f.update(members={"glove": 1.0})), "is damaged"),
    (lambda path: changed(path, lambda f: f.update(members={"bilstm": 1.0})), "head.safetensors is missing"),
    (lambda path: changed(path, lambda f: f["sizes"].update(num_outputs=4) or f["labels"].append("x")), "shape"),
    # Mixtures of format 2 had another file of linear models.
    (lambda path: changed(path, lambda f: f.update(format=2)), "reads only formats 1 and 3"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "problem"), DAMAGES)
def test_a_damaged_mixture_is_one_line(
    fitted: Path, tmp_path: Path, damage: Callable[[Path], object], problem: str
) -> None:
    path = Path(shutil.copytree(fitted, tmp_path / "copy"))
    damage(path)
    assert problem in message_of(RunError, lambda: TaskModel.load(path))
