"""What the tests of words in context share: a drawn model whose segmenter splits at spaces, and a text."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from contexts.explored import explored
from contexts.texts import LINES, indexed, model_of_words, write_text

from elmo_zh import ContextIndex, ElmoEmbedder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contexts") / "model"
    return model_of_words(folder)


@pytest.fixture(scope="session")
def embedder(model: Path) -> ElmoEmbedder:
    return ElmoEmbedder.load(model, "cpu")


@pytest.fixture(scope="session")
def index(embedder: ElmoEmbedder, tmp_path_factory: pytest.TempPathFactory) -> ContextIndex:
    folder = tmp_path_factory.mktemp("contexts-index")
    path = write_text(folder / "a.txt", LINES)
    return indexed(embedder, [path], folder / "a.index", min_count=1)


@pytest.fixture
def folder_of_index(index: ContextIndex, tmp_path: Path) -> Path:
    """A copy of that index, to be damaged."""
    return Path(shutil.copytree(index.path, tmp_path / "index"))


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The content of a page, and the folder with its model and its index, a.index."""
    folder = tmp_path_factory.mktemp("explored")
    return folder, explored(folder)
