"""Repeated lines against counting all of them in memory."""

from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.config import TextConfig
from elmo_zh.run.job import Files, FinishedPart, Work
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.segmenting import duplicates as module
from elmo_zh.segmenting.duplicates import BOILERPLATE, DUPLICATE, find_repeated, key_rule
from elmo_zh.segmenting.extract import TextShard, TextShardWriter


def write_shards(folder: Path, texts: list[list[str]], config: TextConfig) -> list[TextShard]:
    shards = []
    for number, lines in enumerate(texts):
        writer = TextShardWriter(Files(FinishedPart(folder, f"{number:05d}")), 10**6, key_rule(config))
        for line in lines:
            writer.write(0, line)
        writer.finish()
        shards += [TextShard(folder / f"{number:05d}.00000")] * len(writer.sizes)
    return shards


def found_by_counting(texts: list[list[str]], config: TextConfig) -> list[dict[int, int]]:
    copies = Counter(line.strip() for lines in texts for line in lines)
    seen: set[str] = set()
    expected = []
    for lines in texts:
        left_out = {}
        for number, line in enumerate(lines):
            text = line.strip()
            is_long = len(text) >= config.duplicate_min_characters
            if not text:
                continue
            if config.boilerplate_copies and copies[text] > config.boilerplate_copies:
                left_out[number] = BOILERPLATE
            elif config.drop_duplicates and is_long and text in seen:
                left_out[number] = DUPLICATE
            if is_long:
                seen.add(text)
        expected.append(left_out)
    return expected


LINES = st.lists(st.text("天地　", max_size=3), max_size=23)


@settings(deadline=None, max_examples=101)
@given(
    st.lists(LINES.filter(bool), min_size=1, max_size=5),
    st.booleans(),
    st.integers(0, 3),
    st.integers(1, 3),
    st.sampled_from([1, 3, 1000]),
)
def test_repeated_lines_are_those_of_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[list[str]],
    drop_duplicates: bool,
    copies: int,
    least: int,
    bucket_keys: int,
) -> None:
    folder = tmp_path_factory.mktemp("repeated")
    config = TextConfig(drop_duplicates=drop_duplicates, boilerplate_copies=copies, duplicate_min_characters=least)
    shards = write_shards(folder, texts, config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BUCKET_KEYS", bucket_keys)
        found = find_repeated(shards, config, Work(folder / "parts", SilentReporter()))
    if found is None:
        assert (drop_duplicates, copies) == (False, 0)
    else:
        assert [found.in_shard(number) for number in range(len(texts))] == found_by_counting(texts, config)


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
