"""What the tests of `elmo-zh embed` share."""

from pathlib import Path

import pytest
from contract.command_line import SampleRun
from contract.dumps import SEGMENTED_LINES, write_lines

from elmo_zh import ElmoEmbedder


@pytest.fixture(scope="module")
def embedder(sample_run: SampleRun) -> ElmoEmbedder:
    return ElmoEmbedder.load(str(sample_run.model))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "file.txt", SEGMENTED_LINES)
