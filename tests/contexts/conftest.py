"""What the tests of words in context share: a drawn model whose segmenter splits at spaces, and a text."""

from pathlib import Path

import pytest
from contexts.texts import LINES, build, write_text
from drawn_bundles import SHAPES, write_model

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.config import TextConfig


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contexts") / "model"
    return write_model(folder, SHAPES["token"], text=TextConfig(segmenter="whitespace"))


@pytest.fixture(scope="session")
def embedder(model: Path) -> ElmoEmbedder:
    return ElmoEmbedder.load(model, "cpu")


@pytest.fixture(scope="session")
def index(embedder: ElmoEmbedder, tmp_path_factory: pytest.TempPathFactory) -> ContextIndex:
    """The index of `LINES`, with every word; tests only read it."""
    folder = tmp_path_factory.mktemp("contexts-index")
    path = write_text(folder / "a.txt", LINES)
    build(embedder, [path], folder / "a.index", min_count=1)
    return ContextIndex.load(folder / "a.index")
