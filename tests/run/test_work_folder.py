"""Unfinished work: what goes on, what starts over, and what is damaged."""

from pathlib import Path

import pytest
from messages import Heard, message_of

from elmo_zh.errors import OutputError
from elmo_zh.run.work_folder import Region, WorkFolder, part_name

# Opening


@pytest.fixture
def folder(tmp_path: Path) -> WorkFolder:
    return WorkFolder.of(tmp_path / "out")


def test_the_same_work_goes_on_and_other_work_starts_over(folder: WorkFolder) -> None:
    kept = folder.path / "kept"
    for manifest, force, goes_on in (
        ({"text": (7, "å")}, False, False),
        ({"text": [7, "å"]}, False, True),
        ({"text": [8, "å"]}, False, False),
        ({"text": [8, "å"]}, True, False),
    ):
        folder.open(manifest, force=force)
        assert kept.exists() == goes_on
        assert folder.is_of(manifest)
        kept.touch()
    folder.manifest.write_text("{")
    assert not folder.is_of({"text": [8, "å"]})
    folder.open({"text": [8, "å"]})
    assert not kept.exists()
    folder.remove()
    assert not folder.path.exists()
    assert folder.path.name == "out.parts"


def test_finished_parts_of_other_work_are_kept_without_force(folder: WorkFolder) -> None:
    folder.open({"text": 7}, refusal="an unfinished output of another text")
    folder.open({"text": 8}, refusal="an unfinished output of another text")
    folder.finish(part_name(0))
    told = message_of(OutputError, lambda: folder.open({"text": 9}, refusal="an unfinished output of another text"))
    assert told.startswith(f"{folder.path} contains an unfinished output of another text. To continue, use the same")
    folder.open({"text": 9}, refusal="an unfinished output of another text", work="other-*")
    folder.finish(part_name(0))
    folder.open({"text": 8}, refusal="an unfinished output of another text", force=True, discard=lambda: None)
    assert folder.finished() == {part_name(0): {}}


# Records


def test_every_byte_counts(folder: WorkFolder) -> None:
    folder.open({})
    data = folder.path / "data"
    data.write_bytes(bytes(range(101)))
    folder.finish("a", {"lines": 7}, [Region(data, 0, 13), Region(data, 53, 17)])
    record = folder.record("a")
    sound = record.read_bytes()
    for path, vouched in ((data, {*range(13), *range(53, 70)}), (record, set(range(len(sound))))):
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            is_json_space = path == record and whole[place : place + 1] in b" \n"
            assert (folder.figures("a") is not None) == (place not in vouched) or is_json_space
            record.write_bytes(sound)
        path.write_bytes(whole)
    assert folder.figures("a") == {"lines": 7}
    data.write_bytes(bytes(range(69)))
    assert folder.figures("a") is None
    data.unlink()
    record.write_bytes(sound)
    assert folder.figures("a") is None
    assert not record.exists()


@pytest.mark.parametrize(
    "content", ["", "[]", "7", "{}", '{"files": 7, "figures": {}}', "[" * 100_000, '{"n": ' + "1" * 5003 + "}", "\xff"]
)
def test_a_damaged_record_is_no_record(folder: WorkFolder, content: str) -> None:
    folder.open({})
    folder.finish("a", {"lines": 7})
    folder.record("a").write_bytes(content.encode("latin-1"))
    reporter = Heard()
    assert folder.figures("a", reporter) is None
    assert folder.figures("a", reporter) is None
    assert reporter.warnings == [f"Some finished work in {folder.path} is damaged and will be computed again."]
