"""Records that know when they, or the bytes that they vouch for, are damaged."""

from pathlib import Path

from elmo_zh.embed.unfinished import Parts


def test_files_of_tokens_from_the_first_damaged_one_on_are_removed(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    for number in (0, 3, 7):
        parts.text_file(number).write_bytes(bytes([number] * 11))
        parts.finish_text_file(number)
    parts.text_file(9).write_bytes(b"killed before its record")
    assert not parts.remove_text_files(from_damaged=True)
    assert parts.text_files() == [parts.text_file(number) for number in (0, 3, 7)]
    parts.text_file(3).write_bytes(bytes([3] * 10 + [2]))
    assert parts.remove_text_files(from_damaged=True)
    assert parts.text_files() == [parts.text_file(0)]
