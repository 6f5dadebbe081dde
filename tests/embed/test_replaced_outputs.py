"""What --force may replace: outputs of embed, and nothing else."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
from messages import message_of

from elmo_zh.choices import OUTPUT_FORMATS
from elmo_zh.embed.formats import Contents, LineBlock, OutputForm, choose_writer, is_output
from elmo_zh.errors import OutputError
from elmo_zh.run.files import claimed_output

FORMS = (*(OutputForm(format=name) for name in OUTPUT_FORMATS.built_in), OutputForm(layout="packed"))
CONTENTS = Contents(
    attributes={"layers": "top", "dtype": "float32", "segmenter": "as given"},
    num_lines=1, num_tokens=2, num_layers=None, dimension=3, dtype="float32", is_pooled=False,
    has_offsets=False,
)  # fmt: skip


def blocks() -> Iterator[LineBlock]:
    yield LineBlock(
        first_line=0, line_offsets=np.array([0, 2]), tokens=["今天".encode(), "好".encode()],
        unknown=np.zeros(2, bool), character_offsets=None, source_lines=None, texts=[b""],
        vectors=np.ones((2, 3), np.float32), is_pooled=False,
    )  # fmt: skip


def claim(output: Path, form: OutputForm, *, force: bool = True) -> None:
    with claimed_output(output, [], partial(is_output, form=form), force=force):
        pass


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.format}-{form.layout}")
def test_an_output_of_any_format_is_replaced(tmp_path: Path, form: OutputForm) -> None:
    if form.format == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / "vectors"
    choose_writer(form).write(path, CONTENTS, blocks(), form)
    claim(path, OutputForm())
    assert "replace it with --force" in message_of(OutputError, lambda: claim(path, form, force=False))


def test_other_files_are_not_replaced(tmp_path: Path) -> None:
    weights, text = tmp_path / "weights.hdf5", tmp_path / "corpus.jsonl"
    with h5py.File(weights, "w") as file:
        file["weights"] = np.ones(3)
    text.write_text('{"text": "今天"}\n', encoding="utf-8")
    for path in (weights, text):
        require_refusal(path)


def test_a_damaged_table_is_not_replaced(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    table = tmp_path / "corpus.parquet"
    table.write_bytes(b"PAR1 is damaged")
    require_refusal(table)


def require_refusal(path: Path) -> None:
    before = path.read_bytes()
    assert message_of(OutputError, lambda: claim(path, OutputForm())) == (
        f"{path} holds something other than vectors, so even --force does not replace it."
        " Choose another --output, or remove it first."
    )
    assert path.read_bytes() == before


def test_an_empty_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "vectors.jsonl"
    path.touch()
    claim(path, OutputForm())
