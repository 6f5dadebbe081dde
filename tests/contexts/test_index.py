"""The index of words in their sentences: what is in it, and that it is the same however it was made."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contexts.texts import LINES, build, files_of, indexed, write_text
from contract.command_line import changed_json
from drawn_bundles import oracle_layers
from messages import message_of
from packed import zip_of

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.contexts import index_text
from elmo_zh.errors import ElmoZhError, OutputError
from elmo_zh.run.arrays import write_header


def expected_occurrences(*unwanted: str) -> list[tuple[str, int, int]]:
    """Word, line and token of every occurrence that is no punctuation."""
    return [
        (word, number, place)
        for number, line in enumerate(LINES)
        for place, word in enumerate(line.split())
        if word not in ("。", "，", *unwanted)
    ]


def found_occurrences(index: ContextIndex) -> list[tuple[str, int, int]]:
    all_found = map(index.occurrence, range(len(index)))
    return [(each.word, index.line(each.line).number, each.token) for each in all_found]


def test_every_word_is_found_where_it_is(index: ContextIndex) -> None:
    assert found_occurrences(index) == expected_occurrences()
    assert index.words == sorted({word for word, _, _ in expected_occurrences()})
    for number in range(len(index)):
        occurrence = index.occurrence(number)
        line = index.line(occurrence.line)
        assert line.text == LINES[line.number]
        assert line.text[occurrence.start : occurrence.end] == occurrence.word
        assert line.source.endswith("a.txt")
    for word in index.words:
        numbers = index.occurrences(word).tolist()
        assert numbers == [n for n, (found, _, _) in enumerate(expected_occurrences()) if found == word]
        assert index.count(word) == len(numbers)
    assert ("苹果" in index, "。" in index) == (True, False)


def test_the_vectors_are_the_oracles(index: ContextIndex, model: Path) -> None:
    for number in range(len(index)):
        occurrence = index.occurrence(number)
        layers = oracle_layers(model, index.line(occurrence.line).text.split())[:, occurrence.token + 1]
        for layer in index.layers:
            np.testing.assert_allclose(index.vectors(layer)[number], layers[layer], rtol=2e-3, atol=2e-3)
            stored = index.vectors(layer)[number].astype(np.float64)
            assert index.norms(layer)[number] == pytest.approx(float(np.sqrt((stored**2).sum())))


def test_rare_words_and_words_outside_a_list_are_left_out(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.txt", LINES)
    assert found_occurrences(indexed(embedder, [path], tmp_path / "common")) == expected_occurrences(
        "很", "米饭", "和", "手机", "都", "齉"
    )
    with pytest.raises(ElmoZhError, match="has no vectors for 齉"):
        ContextIndex.load(tmp_path / "common").count("齉")
    report = build(embedder, [path], tmp_path / "listed", words=frozenset({"齉", "，", "没有"}), layers=(1,))
    listed = ContextIndex.load(tmp_path / "listed")
    assert found_occurrences(listed) == [("，", 2, 3), ("，", 3, 1), ("齉", 5, 0)]
    assert (listed.layers, report.missing_words) == ((1,), ("没有",))
    with pytest.raises(ElmoZhError, match=r"has no vectors for layer 2\. Choose one of its layers: 1"):
        listed.vectors(2)


def test_segmented_and_split_texts(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.txt", ["我们 吃 苹果 。", "今天 吃。我们 。 吃 苹果 ！"])
    segmented = indexed(embedder, [path], tmp_path / "segmented", segmented=True, min_count=1)
    assert found_occurrences(segmented)[3:] == [("今天", 1, 0), ("吃。我们", 1, 1), ("吃", 1, 3), ("苹果", 1, 4)]
    split = indexed(embedder, [path], tmp_path / "split", split=True, min_count=1)
    apple = split.occurrence(int(split.occurrences("苹果")[1]))
    line = split.line(apple.line)
    assert (line.text, line.number, line.text[apple.start : apple.end]) == (" 吃 苹果 ！", 1, "苹果")


def test_lines_of_an_archive_name_their_member(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    members = {"old/a.txt": [*LINES], "c.txt": [], "new/b.txt": ["米饭 很 贵 。 苹果 都 贵 。", "", "我们 吃 手机"]}
    zip_of(tmp_path / "x.zip", {name: "".join(f"{line}\n" for line in lines) for name, lines in members.items()})
    plain = write_text(tmp_path / "y.txt", LINES)
    index = indexed(embedder, [tmp_path / "x.zip", plain], tmp_path / "index", min_count=1, split=True)
    assert index.sources == [*(f"{tmp_path}/x.zip/{name}" for name in members), str(plain)]
    lines = [index.line(number) for number in range(index.info["counts"]["lines"])]
    assert {line.source for line in lines} == {index.sources[0], index.sources[2], str(plain)}
    for line in lines:
        member = line.source.removeprefix(f"{tmp_path}/x.zip/")
        assert line.text in members.get(member, LINES)[line.number]


def test_a_sample_does_not_depend_on_blocks_and_hardly_on_further_text(
    embedder: ElmoEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"吃 {'苹果 ' * (number % 4)}w{number % 7}" for number in range(60)]
    paths = [write_text(tmp_path / "a.txt", lines[:40]), write_text(tmp_path / "b.txt", lines[40:])]
    index = indexed(embedder, paths, tmp_path / "index", max_per_word=11, layers=(1,))
    assert {word: len(index.occurrences(word)) for word in ("吃", "苹果", "w0")} == {"吃": 11, "苹果": 11, "w0": 9}
    assert (index.count("吃"), index.count("苹果")) == (60, 90)
    monkeypatch.setattr(index_text, "_HASHED_AT_ONCE", 7)
    build(embedder, paths, tmp_path / "again", max_per_word=11, layers=(1,), part_lines=3)
    assert files_of(tmp_path / "again") == files_of(tmp_path / "index")
    other = indexed(embedder, paths, tmp_path / "other", max_per_word=11, layers=(1,), seed=2)
    assert found_occurrences(other) != found_occurrences(index)
    paths.append(write_text(tmp_path / "c.txt", lines[:6]))
    longer = indexed(embedder, paths, tmp_path / "longer", max_per_word=11)
    places = []
    for each in (index, longer):
        lines_of_word = [each.line(each.occurrence(number).line) for number in each.occurrences("吃").tolist()]
        places.append({(line.source, line.number) for line in lines_of_word})
    assert len(places[0] & places[1]) >= 8


def test_texts_without_a_word_to_index(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    wrong: list[tuple[list[str], dict[str, Any], str]] = [
        ([*LINES], {"min_count": 9}, "a.txt: no word to index among 31 tokens"),
        ([*LINES], {"words": frozenset({"香蕉"})}, "write the words in --words FILE as the segmenter splits them"),
    ]
    for lines, choice, message in wrong:
        with pytest.raises(ElmoZhError, match=message):
            build(embedder, [write_text(tmp_path / "a.txt", lines)], tmp_path / "index", **choice)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def without_digests(folder: Path) -> None:
    with changed_json(folder / "index.json") as info:
        del info["digests"]


def read_everything(folder: Path) -> None:
    index = ContextIndex.load(folder)
    assert [*index.words, *index.columns, index.line(0)]
    for number in range(len(index)):
        index.occurrences(index.occurrence(number).word)
    for layer in index.layers:
        index.neighbours(index.vectors(layer)[0], layer)
    assert index.tokens()


def test_every_file_of_an_index_is_checked_when_it_is_read(folder_of_index: Path) -> None:
    """Against a bit that changed, an end that is missing, and a file that is."""
    for name, content in files_of(folder_of_index).items():
        path = folder_of_index / name
        changed = (content[:-1] + bytes([content[-1] ^ 1]), content[:-7])
        for damaged in changed if name != "index.json" else changed[1:]:
            path.write_bytes(damaged)
            assert message_of(OutputError, lambda: read_everything(folder_of_index)).startswith(f"{path} is damaged")
        path.unlink()
        with pytest.raises(OutputError, match="is missing"):
            ContextIndex.load(folder_of_index)
        path.write_bytes(content)
    without_digests(folder_of_index)
    read_everything(folder_of_index)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 4},
        {"counts": {}},
        {"texts": [{"name": "a", "members": [{"name": 1, "first_line": 0}]}]},
        {"texts": [{"name": "a", "members": [{"name": "b", "first_line": 3}, {"name": "c", "first_line": 2}]}]},
        {"dimension": "x"},
        {"model": None},
    ],
)
def test_index_json_is_checked(folder_of_index: Path, index: ContextIndex, change: dict[str, Any]) -> None:
    (folder_of_index / "index.json").write_text(json.dumps({**index.info, **change}), encoding="utf-8")
    with pytest.raises(OutputError, match=r"index.json (has format 4|is damaged)"):
        ContextIndex.load(folder_of_index)


def test_a_header_that_claims_more_than_the_file_has_takes_no_memory(folder_of_index: Path) -> None:
    without_digests(folder_of_index)
    path = folder_of_index / "layer-1.npy"
    header = BytesIO()
    write_header(header, np.float16, (99_999_999, 10))
    content = path.read_bytes()
    path.write_bytes(header.getvalue() + content[len(header.getvalue()) :])
    with pytest.raises(OutputError, match=r"layer-1\.npy is damaged"):
        ContextIndex.load(folder_of_index).vectors(1)
