"""Repeated lines against a set of all of them."""

from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.run.job import Files, FinishedPart, Work
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.segmenting import duplicates as module
from elmo_zh.segmenting.duplicates import find_repeated
from elmo_zh.segmenting.extract import TextShard, TextShardWriter

LINES = st.lists(st.text("天地　", max_size=3), max_size=23)


@settings(deadline=None, max_examples=101)
@given(st.lists(LINES.filter(bool), min_size=1, max_size=5), st.integers(1, 3), st.sampled_from([1, 3, 1000]))
def test_repeated_lines_are_those_of_a_set(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[str]], least: int, bucket_keys: int
) -> None:
    folder, shards, seen = tmp_path_factory.mktemp("repeated"), [], set[str]()
    expected: list[set[int]] = []
    for number, lines in enumerate(texts):
        writer = TextShardWriter(Files(FinishedPart(folder, f"{number:05d}")), 10**6, least)
        expected.append(set())
        for place, line in enumerate(lines):
            writer.write(0, line)
            if len(line.strip()) >= least:
                expected[-1] |= {place} if line.strip() in seen else set()
                seen.add(line.strip())
        writer.finish()
        shards.append(TextShard(folder / f"{number:05d}.00000"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BUCKET_KEYS", bucket_keys)
        found = find_repeated(shards, Work(folder / "parts", SilentReporter()))
    assert [found.in_shard(number) for number in range(len(texts))] == expected


# Lines in shards on disk are what was written


LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=7)
SOURCES = st.lists(st.lists(LINE, max_size=5), max_size=9)


@settings(deadline=None, max_examples=101)
@given(SOURCES, st.integers(1, 60))
def test_lines_and_sources(
    tmp_path_factory: pytest.TempPathFactory, sources: list[list[str]], shard_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    writer = TextShardWriter(Files(FinishedPart(folder, "a")), shard_bytes, None)
    given = [(source, line) for source, lines in enumerate(sources) for line in lines]
    for source, line in given:
        writer.write(source, line)
    writer.finish()
    for shard_number, num_bytes in enumerate(writer.sizes):
        shard = TextShard(folder / f"a.{shard_number:05d}")
        lines = list(shard.iter_lines())
        of_shard, given = given[: len(lines)], given[len(lines) :]
        assert lines == [line for _, line in of_shard]
        assert shard.load_runs().tolist() == [
            [source, len(list(run))] for source, run in groupby(of_shard, lambda line: line[0])
        ]
        assert shard.file("txt").stat().st_size == num_bytes
    assert not given
    assert all(num_bytes >= shard_bytes for num_bytes in writer.sizes[:-1])
