"""Names with control characters do not break messages into lines."""

from pathlib import Path

import pytest
from contract.command_line import elmo_zh

from elmo_zh.cli.console import one_line


def test_what_is_escaped() -> None:
    assert one_line("甲\u3000乙 a\tb\nc\r\x1b[2J\u2028\udcff\ue000") == (
        "甲\u3000乙 a\\tb\\nc\\r\\x1b[2J\\u2028\\udcff\ue000"
    )


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize("command", [("info",), ("inspect",), ("plan",), ("merge",)])
def test_a_name_with_a_line_feed(command: tuple[str, ...]) -> None:
    answer = elmo_zh(*command, "a\nb")
    assert "a\\nb" in answer.only_error()


@pytest.mark.usefixtures("empty_folder")
def test_two_lines_of_one_name() -> None:
    Path("a\nb.txt").write_text("今天下雨。\n", encoding="utf-8")
    answer = elmo_zh("segment", "a\nb.txt", "--run", "run\nn", "--set", "text.segmenter=character")
    assert answer.status == 0
    assert all(line.startswith(("segment: ", "Warning: ", "Next: ")) for line in answer.stderr.splitlines())
