"""Training a task: it learns, and predicts what it was taught."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import contents_alone
from drawn_bundles import TOKENS, write_model
from messages import message_of
from tasks.labelled import WORDS, changed, drawn_texts, lines, written

from elmo_zh import ElmoEmbedder
from elmo_zh.config import TextConfig
from elmo_zh.config.task_settings import DataFiles, FitJob, HeadSettings, Reading, TrainSettings
from elmo_zh.errors import BundleError, ElmoZhError
from elmo_zh.tasks.fit import fit_task
from elmo_zh.tasks.scores import ClassPrediction, NumberPrediction, TagPrediction
from elmo_zh.tasks.task_model import TaskModel


def write_data(folder: Path, kind: str) -> Path:
    """Texts whose labels depend on one character: a task that any working network learns."""
    texts = drawn_texts(90)
    if kind == "tag":
        blocks = ["".join(f"{each}\t{'S-FOOD' if each in '苹果' else 'O'}\n" for each in text) for text in texts]
        return written(folder, "data.conll", "\n".join(blocks))
    rows = []
    for text, other in zip(texts, reversed(texts), strict=True):
        has = "我" in text
        if kind == "pairs":
            rows.append({"text1": text, "text2": other, "label": "same" if has == ("我" in other) else "different"})
        else:
            rows.append(
                {"text": text, "label": text.count("我") if kind == "regression" else "me" if has else "others"}
            )
    return written(folder, "data.jsonl", lines(*rows))


def job_of(path: Path, kind: str, **changes: Any) -> FitJob:
    regression = kind == "regression"
    kind = "classify" if regression else kind
    job = FitJob(
        files=DataFiles(data=path),
        reading=Reading(kind=kind, regression=regression),
        settings=HeadSettings(kind=kind, head="bilstm", inputs=(), regression=regression, hidden_dim=13, dropout=0.1),
        training=TrainSettings(epochs=12, patience=12, batch_size=8, learning_rate=0.02),
    )
    return replace(job, **changes)


@pytest.fixture(scope="module")
def trained(embedder: ElmoEmbedder, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Each kind of task, trained once; tests only read it."""
    found: dict[str, Path] = {}

    def train(kind: str) -> Path:
        if kind not in found:
            folder = tmp_path_factory.mktemp(kind)
            job = job_of(write_data(folder, kind), kind)
            if kind == "pairs":  # looked at for their form
                job = replace(job, training=replace(job.training, epochs=1))
            fit_task(job, embedder, folder / "task")
            found[kind] = folder / "task"
        return found[kind]

    return train


PREDICTIONS = {"classify": ClassPrediction, "tag": TagPrediction, "regression": NumberPrediction}


@pytest.mark.parametrize("kind", PREDICTIONS)
def test_it_learns_and_predicts(trained: Callable[[str], Path], kind: str) -> None:
    path = trained(kind)
    pictures = {"curve.png"} if kind == "regression" else {"confusion.png", "curve.png"}
    assert set(contents_alone(path)) == {*pictures, "head.safetensors", "metrics.jsonl", "task.json"}
    assert not path.with_name("task.parts").exists()
    model = TaskModel.load(path)
    scores = model.description.scores
    assert scores["test"][scores["metric"]] > (0.8 if kind == "regression" else 0.9)  # ties lower a rank correlation
    texts = ["他吃我苹果", "他来", ""]
    found: list[Any] = model.predict(texts)
    assert [type(each) for each in found] == [PREDICTIONS[kind]] * 3
    first, second, _ = found
    if kind == "classify":
        assert (first.label, second.label) == ("me", "others")
        assert sum(first.probabilities.values()) == pytest.approx(1)
        assert first.probabilities["me"] == max(first.probabilities.values())
    elif kind == "tag":
        assert first.units == list(texts[0])
        assert first.tags == ["O", "O", "O", "S-FOOD", "S-FOOD"]
        spans = [(span.start, span.end, span.label, span.text) for span in first.spans]
        assert spans == [(3, 4, "FOOD", "苹"), (4, 5, "FOOD", "果")]
    else:
        assert first.value - second.value > 0.4


@pytest.mark.usefixtures("no_pictures")
def test_a_task_predicts_in_the_precision_and_the_reading_of_its_training(
    embedder: ElmoEmbedder, tmp_path: Path
) -> None:
    rounded = ElmoEmbedder.load(embedder.bundle.path, "cpu", "bfloat16", unknown="backoff")
    job = job_of(write_data(tmp_path, "tag"), "tag", training=TrainSettings(epochs=1, batch_size=8))
    fit_task(job, rounded, tmp_path / "task")
    loaded = TaskModel.load(tmp_path / "task", device="cpu").embedder
    assert (loaded.precision, loaded.unknown) == ("bfloat16", "backoff")
    for given, expected in zip(loaded.embed(["他吃苹"]), rounded.embed(["他吃苹"]), strict=True):
        np.testing.assert_array_equal(given, expected)


def test_inputs_that_the_model_lacks_are_refused_before_anything_is_computed(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "bare", TOKENS, words=WORDS, text=TextConfig(segmenter="character"))
    bare = ElmoEmbedder.load(folder, "cpu", unknown="backoff")
    job = job_of(write_data(tmp_path, "classify"), "classify")
    job = replace(job, settings=replace(job.settings, inputs=("word2vec",)))
    with pytest.raises(ElmoZhError, match="has no word2vec vectors"):
        fit_task(job, bare, tmp_path / "task")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bare", "data.jsonl"]


def _zero(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-400] + bytes(400))


def _in(section: str, **values: Any) -> Callable[[Path], object]:
    return lambda path: changed(path, lambda found: (found[section] if section else found).update(values))


# Of a network, and of a mixture, whose format 2 had another file of linear models.
DAMAGES: list[tuple[bool, Callable[[Path], object], str]] = [
    (False, lambda path: (path / "task.json").unlink(), "task.json is missing"),
    (False, lambda path: (path / "task.json").write_text("{"), "is damaged"),
    (False, _in("settings", hidden_dim=4096), "size mismatch"),
    (False, _in("sizes", num_outputs="2"), "is damaged"),
    (False, _in("settings", head="none"), "is damaged"),
    (False, lambda path: (path / "head.safetensors").unlink(), "head.safetensors is missing"),
    (False, lambda path: _zero(path / "head.safetensors"), "its digest differs"),
    (False, _in("model", digest="sha256:0"), "trained on was not found at"),
    (False, _in("model", path="starter"), "is not installed."),
    (True, lambda path: (path / "linear.safetensors").unlink(), "linear.safetensors is missing"),
    (True, lambda path: _zero(path / "linear.safetensors"), "its digest differs"),
    (True, _in("", members={"glove": 1.0}), "is damaged"),
    (True, _in("", members={"bilstm": 1.0}), "head.safetensors is missing"),
    (True, lambda path: changed(path, lambda f: f["sizes"].update(num_outputs=4) or f["labels"].append("x")), "shape"),
    (True, _in("", format=2), "has format 2"),
]


@pytest.mark.parametrize(("is_mixture", "damage", "problem"), DAMAGES)
def test_a_damaged_task_is_one_line(
    trained: Callable[[str], Path],
    mixture: Path,
    tmp_path: Path,
    is_mixture: bool,
    damage: Callable[[Path], object],
    problem: str,
) -> None:
    path = Path(shutil.copytree(mixture if is_mixture else trained("classify"), tmp_path / "copy"))
    damage(path)
    assert problem in message_of(ElmoZhError, lambda: TaskModel.load(path))


def test_a_task_finds_its_model(trained: Callable[[str], Path], embedder: ElmoEmbedder, tmp_path: Path) -> None:
    assert TaskModel.load(trained("classify")).embedder.bundle.path == embedder.bundle.path
    model = shutil.copytree(embedder.bundle.path, tmp_path / "here" / "runs" / "mine" / "model")
    path = Path(shutil.copytree(trained("classify"), tmp_path / "here" / "tasks" / "task"))
    changed(path, lambda found: found["model"].update(path="/before/runs/mine/model"))
    assert TaskModel.load(path).embedder.bundle.path == model
    # Another model of that name is not taken, and the right one beside the task is found.
    moved = Path(shutil.copytree(path, tmp_path / "moved" / "task"))
    write_model(moved.parent / "mine" / "model", TOKENS, seed=5)
    assert "was not found at /before/runs/mine/model, beside the task" in message_of(
        BundleError, lambda: TaskModel.load(moved)
    )
    assert TaskModel.load(moved, model=model).predict(["我"])
    shutil.copytree(model, moved.parent / "model")
    assert TaskModel.load(moved).embedder.bundle.path == moved.parent / "model"
