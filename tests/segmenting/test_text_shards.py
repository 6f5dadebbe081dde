"""Lines in shards on disk are what was written."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.run.work_folder import PartWriter
from elmo_zh.segmenting.text_shards import TextShard, TextShardWriter

DOCUMENTS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.booleans(),
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=7), max_size=5),
    ),
    max_size=9,
)


@settings(deadline=None, max_examples=101)
@given(DOCUMENTS, st.integers(1, 60))
def test_lines_sources_and_documents(
    tmp_path_factory: pytest.TempPathFactory, documents: list[tuple[int, bool, list[str]]], shard_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    with TextShardWriter(PartWriter(folder, "a"), shard_bytes, None) as writer:
        for source, continues, lines in documents:
            writer.start_document(source, continues=continues)
            for line in lines:
                writer.write(line)
    shards = [TextShard(folder / f"a.{number:05d}") for number in range(len(writer.sizes))]
    read = []
    for shard, num_bytes in zip(shards, writer.sizes, strict=True):
        lines = shard.iter_lines()
        assert shard.file("txt").stat().st_size == num_bytes
        for source, num_lines, starts in shard.load_runs().tolist():
            read += [(source, starts and not place, next(lines)) for place in range(num_lines)]
        assert list(lines) == []
    expected = [
        (source, not continues and not place, line)
        for source, continues, lines in documents
        for place, line in enumerate(lines)
    ]
    assert [(source, bool(starts), line) for source, starts, line in read] == expected
    assert all(num_bytes >= shard_bytes for num_bytes in writer.sizes[:-1])


def test_the_files_of_a_shard_by_hand(tmp_path: Path) -> None:
    with TextShardWriter(PartWriter(tmp_path, "a"), 100, None) as writer:
        writer.start_document(2)
        writer.start_document(3)
        writer.write("天")
        writer.write("")
    shard = TextShard(tmp_path / "a.00000")
    assert shard.file("txt").read_bytes() == "天\n\n".encode()
    assert shard.load_runs().tolist() == [[3, 2, 1]]


def test_nothing_is_left_of_what_fails(tmp_path: Path) -> None:
    def fail() -> None:
        with TextShardWriter(PartWriter(tmp_path, "a"), 3, None) as writer:
            writer.start_document(0)
            writer.write("天地")
            writer.write("人" * 9)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.00000.keys",
        "a.00000.places",
        "a.00000.runs",
        "a.00000.txt",
    ]
