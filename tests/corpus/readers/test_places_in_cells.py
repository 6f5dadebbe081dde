"""Places in a cell are those that Python, pandas and annotation programs count, whatever ends its lines."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.text.preparation import TextPreparation

# Line ends, full and half width, a combining mark, a variant's mark, characters that are surrogate pairs in JSON.
PIECES = (
    "\r\n",
    "\n",
    "\r",
    "\u2028",
    "\x85",
    "。",
    "阿司匹林",
    "ＡＢＣ１",
    "abc 1",
    "ｶﾞ",
    "e\u0301",
    "葛\U000e0100",
    "\U00020000",
    "😀",
)
CELLS = st.lists(st.lists(st.sampled_from(PIECES), min_size=1).map("".join), min_size=1, max_size=5)

PREPARATION = TextPreparation.build(TextConfig())


def table(cells: list[str], line_end: str) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(
        [("text", "n"), *((c, 7) for c in cells)]
    )
    return file.getvalue()


FORMS = {
    "a.csv": lambda cells: table(cells, "\r\n"),
    "b.csv": lambda cells: table(cells, "\n"),
    "c.csv": lambda cells: table(cells, "\r"),
    "a.jsonl": lambda cells: "".join(json.dumps({"text": cell}) + "\r\n" for cell in cells),
    "a.json": lambda cells: json.dumps([{"text": cell, "n": 7} for cell in cells], ensure_ascii=True, indent=1),
}


@pytest.mark.parametrize("name", FORMS)
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=CELLS)
def test_a_line_has_the_places_of_its_cell(tmp_path: Path, name: str, cells: list[str]) -> None:
    path = tmp_path / name
    path.write_bytes(FORMS[name](cells).encode())
    [source] = find_sources([str(path)]).sources
    lines = list(input_text(source, TextConfig(field="text")).lines())
    assert lines == [cell.replace("\r", " ").replace("\n", " ") for cell in cells]
    for cell, line in zip(cells, lines, strict=True):
        found = PREPARATION.prepare(line)
        for token, (start, end) in zip(found.tokens, found.offsets.tolist(), strict=True):
            assert PREPARATION.normalise(cell[start:end]).strip(" ") == token
