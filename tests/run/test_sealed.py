"""Records that know when they, or the bytes that they vouch for, are damaged."""

import json
from pathlib import Path

import pytest

from elmo_zh.embed.unfinished import Parts
from elmo_zh.run.files import read_json
from elmo_zh.run.sealed import Region, has_its_content, read_sealed, write_sealed


def write_record(folder: Path) -> tuple[Path, Path]:
    data, record = folder / "data", folder / "record.json"
    data.write_bytes(bytes(range(101)))
    write_sealed(record, {"lines": 7}, [Region(data, 0, 13), Region(data, 53, 17)])
    return data, record


def test_every_byte_counts(tmp_path: Path) -> None:
    data, record = write_record(tmp_path)
    assert read_sealed(record) == {"lines": 7}
    for path, vouched in ((data, {*range(13), *range(53, 70)}), (record, set(range(record.stat().st_size)))):
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            is_json_space = path == record and whole[place : place + 1] in b" \n"
            assert has_its_content(record) == (place not in vouched) or is_json_space
        path.write_bytes(whole)
    assert has_its_content(record)


def test_a_file_that_is_shorter_or_gone(tmp_path: Path) -> None:
    data, record = write_record(tmp_path)
    data.write_bytes(bytes(range(69)))
    assert not has_its_content(record)
    data.unlink()
    assert not has_its_content(record)
    record.unlink()
    assert not has_its_content(record)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"lines": 7}', "[" * 100_000, '{"n": ' + "1" * 5003 + "}", "\udcff"]
)
def test_what_is_no_record(tmp_path: Path, content: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ValueError, match=r"damaged|nested|Expecting|digits|decode"):
        read_sealed(path)


def test_json_nested_too_deep_is_a_value_error(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" * 200_000 + "]" * 200_000)
    with pytest.raises(ValueError, match="nested too deep"):
        read_json(path)
    path.write_text(json.dumps({"a": [1]}))
    assert read_json(path) == {"a": [1]}


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
