"""Tables: the same rows in each format, one at a time."""

import csv
import json
from collections.abc import Iterator
from io import BytesIO, StringIO
from typing import Any

from elmo_zh.run.tables import write_rows

ROWS: list[dict[str, Any]] = [{"词": "一\t二\\", "n": 1.23456789}, {"词": 'a,"b"\n', "n": None}]


def written(kind: str) -> str:
    file = BytesIO()
    write_rows(ROWS, file, kind)
    return file.getvalue().decode("utf-8")


def test_cells_with_separators_can_be_told_apart() -> None:
    assert written("tsv") == '词\tn\n一\\t二\\\\\t1.23457\na,"b"\\n\t\n'
    assert written("csv").startswith("\ufeff")
    rows = csv.reader(StringIO(written("csv").removeprefix("\ufeff"), newline=""))
    assert list(rows) == [["词", "n"], ["一\t二\\", "1.23457"], ['a,"b"\n', ""]]
    assert list(map(json.loads, written("jsonl").splitlines())) == [{**ROWS[0], "n": 1.23457}, {**ROWS[1], "n": ""}]


def test_a_row_is_written_before_the_next_is_read_and_a_header_needs_no_row() -> None:
    file, sizes = BytesIO(), []

    def rows() -> Iterator[dict[str, Any]]:
        for row in ROWS:
            sizes.append(len(file.getvalue()))
            yield row
        sizes.append(len(file.getvalue()))

    write_rows(rows(), file, "jsonl")
    assert sizes[0] == 0 < sizes[1] < sizes[2]
    for kind, header in (("tsv", "a\tb\n"), ("csv", "\ufeffa,b\r\n"), ("jsonl", "")):
        empty = BytesIO()
        write_rows([], empty, kind, ["a", "b"])
        assert empty.getvalue().decode() == header
