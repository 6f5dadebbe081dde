"""What the tests of `elmo-zh embed` share."""

from pathlib import Path

import pytest
from contract.command_line import SampleRun
from contract.dumps import SEGMENTED_LINES, write_lines
from drawn_bundles import TOKENS, write_model

from elmo_zh import ElmoEmbedder
from elmo_zh.config import TextConfig


@pytest.fixture(scope="module")
def embedder(sample_run: SampleRun) -> ElmoEmbedder:
    return ElmoEmbedder.load(str(sample_run.model))


@pytest.fixture(scope="module")
def by_character(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drawn model of the test module's WORDS, to which each character of a text is a token."""
    folder = tmp_path_factory.mktemp("bundles") / "model"
    return write_model(folder, TOKENS, words=request.module.WORDS, text=TextConfig(segmenter="character"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "file.txt", SEGMENTED_LINES)
