"""What the tests of tasks share: a small model of characters, and trainings without pictures."""

from pathlib import Path

import pytest
from drawn_bundles import TOKENS, add_word2vec, write_model
from tasks.labelled import WORDS, quick_job, write_sums

from elmo_zh import ElmoEmbedder
from elmo_zh.config import TextConfig
from elmo_zh.tasks.fit import fit_task


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks") / "model"
    return add_word2vec(write_model(folder, TOKENS, words=WORDS, text=TextConfig(segmenter="character")))


@pytest.fixture(scope="session")
def embedder(model: Path) -> ElmoEmbedder:
    return ElmoEmbedder.load(model, "cpu", unknown="unk")


@pytest.fixture(scope="session")
def mixture(embedder: ElmoEmbedder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained mixture; tests only read it."""
    folder = tmp_path_factory.mktemp("mixture")
    fit_task(quick_job(write_sums(folder)), embedder, folder / "task")
    return folder / "task"


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take as long as these trainings."""
    for name in ("curve_figure", "confusion_figure", "save_picture"):
        monkeypatch.setattr(f"elmo_zh.tasks.fit.{name}", lambda *_: None)
