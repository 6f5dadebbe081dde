"""Read the rows of a Parquet file as JSON lines, batch by batch."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from elmo_zh.corpus.content import Content, import_extra
from elmo_zh.corpus.packing import damage_error, stream_of

_BATCH_ROWS = 1000


def is_parquet(content: Content) -> bool:
    """Return whether a file is a Parquet table, whatever its name."""
    with content.open() as stream:
        return stream.read(4) == b"PAR1"


def as_json_lines(content: Content) -> Content:
    """Return the table as a file of JSON lines, which is written while it is read."""
    parquet = import_extra("pyarrow.parquet", content.name, "parquet")

    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        with content.open() as stream:
            yield stream_of(_lines(parquet, stream, content.name))

    name = f"{PurePosixPath(content.file_name).stem}.jsonl"
    return replace(content, file_name=name, open=opened, encoding="utf-8")


def _lines(parquet: Any, stream: BinaryIO, name: str) -> Iterator[bytes]:
    try:
        for batch in parquet.ParquetFile(stream).iter_batches(_BATCH_ROWS):
            for row in batch.to_pylist():
                yield json.dumps(row, ensure_ascii=False, default=_as_json).encode("utf-8", "replace") + b"\n"
    except (OSError, ValueError) as error:
        raise damage_error(name, " ".join(str(error).split())[:100]) from None


def _as_json(value: Any) -> str:
    """Return a value that JSON lacks, such as a date, as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
