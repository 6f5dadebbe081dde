"""The selection of words, and the vocabulary files."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import message_of

from elmo_zh.config import VocabConfig
from elmo_zh.errors import RunError
from elmo_zh.run.files import file_digest
from elmo_zh.run.job import Work
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.vocabulary.selection import VocabularyCounts, count_words, select_vocabulary
from elmo_zh.vocabulary.vocabulary import (
    SPECIALS,
    UNKNOWN_ID,
    BoundedCounts,
    Vocabulary,
    load_counts,
    load_vocabulary,
    load_words,
    save_counts,
)

# Five sentences: 好 5, 天 3, 苹果 2, 花 2, 行 1, and words spelled like the specials.
TEXT = ["天 好 好", "苹果 好 <UNK> 天", "花 <S> <UNK>", "花 </S> 苹果 好 <UNK>", "天 行 好 <S>"]
WORD = st.text(st.characters(codec="utf-8", exclude_characters=" \r\n"), min_size=1, max_size=5)


def segmented(folder: Path, *files: list[str]) -> list[Path]:
    paths = []
    for number, lines in enumerate(files):
        paths.append(folder / f"train-{number:05d}.txt")
        paths[-1].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return paths


def build(paths: list[Path], given: Sequence[str] = (), **settings: int | str) -> VocabularyCounts:
    with TemporaryDirectory() as parts:
        counted = count_words(paths, Work(Path(parts), SilentReporter()))
        return select_vocabulary(counted, VocabConfig(**settings), given)  # type: ignore[arg-type]


def test_built_by_falling_count_then_code_point(tmp_path: Path) -> None:
    built = build(segmented(tmp_path, TEXT[:2], TEXT[2:]), size=0, min_count=1)
    # 花 is U+82B1, 苹 U+82F9.
    assert built.vocabulary.tokens == (*SPECIALS, "好", "天", "花", "苹果", "行")
    assert list(built.counts) == [5, 5, 6, 5, 3, 2, 2, 1]
    # Words spelled like special tokens: 3 <UNK>, 2 <S>, 1 </S>.
    assert built.spelling.counts == {"<": 6, ">": 6, "S": 3, "/": 1, "U": 3, "N": 3, "K": 3, "</W>": 6}
    assert built.num_distinct_words == 8
    assert built.coverage == pytest.approx(13 / 19)


def test_the_files_byte_by_byte(tmp_path: Path) -> None:
    vocabulary = Vocabulary((*SPECIALS, "好", "苹果"))
    vocabulary.save(tmp_path / "vocab.data")
    save_counts(tmp_path / "vocab.counts", zip(vocabulary.tokens, [7, 7, 3, 5, 2], strict=True))
    assert (tmp_path / "vocab.data").read_bytes() == "<S>\n</S>\n<UNK>\n好\n苹果\n".encode()
    assert (tmp_path / "vocab.counts").read_bytes() == "<S>\t7\n</S>\t7\n<UNK>\t3\n好\t5\n苹果\t2\n".encode()
    assert vocabulary.digest() == file_digest(tmp_path / "vocab.data")


@settings(deadline=None, max_examples=53)
@given(st.lists(st.tuples(WORD, st.integers(0, 10**12)), max_size=13, unique_by=lambda entry: entry[0]))
def test_any_words_come_back(tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, int]]) -> None:
    folder = tmp_path_factory.mktemp("vocabulary")
    entries = sorted((entry for entry in entries if entry[0] not in SPECIALS), key=lambda entry: -entry[1])
    vocabulary = Vocabulary((*SPECIALS, *(word for word, _ in entries)))
    counts = [7, 7, 3, *(count for _, count in entries)]
    vocabulary.save(folder / "vocab.data")
    save_counts(folder / "vocab.counts", zip(vocabulary.tokens, counts, strict=True))
    loaded = load_vocabulary(folder / "vocab.data")
    assert loaded.tokens == vocabulary.tokens
    assert loaded.digest() == vocabulary.digest() == file_digest(folder / "vocab.data")
    assert load_counts(folder / "vocab.counts", loaded) == counts
    assert loaded.encode(word for word, _ in entries) == list(range(3, 3 + len(entries)))


@pytest.mark.parametrize(("tokens", "line"), [("好 花 好", 6), ("好 <S>", 5), (" 好", 4)])
def test_files_that_are_no_vocabulary(tmp_path: Path, tokens: str, line: int) -> None:
    path = tmp_path / "vocab.data"
    path.write_text("".join(f"{token}\n" for token in (*SPECIALS, *tokens.split(" "))), encoding="utf-8")
    message = message_of(RunError, lambda: load_vocabulary(path))
    expected = f"{path}: line {line} is empty or repeats an earlier line. "
    expected += "Correct it or, in a run, recreate the file with: elmo-zh vocab"
    assert message == expected


@pytest.mark.parametrize("rows", ["花\t5", "好 5", "好\t-3", "好\t5\n花\t6", "好\t5\n花\t5\n草\t2", "好\t5"])
def test_counts_of_another_vocabulary(tmp_path: Path, rows: str) -> None:
    path = tmp_path / "vocab.counts"
    path.write_text(f"<S>\t7\n</S>\t7\n<UNK>\t3\n{rows}\n", encoding="utf-8")
    told = message_of(RunError, lambda: load_counts(path, Vocabulary((*SPECIALS, "好", "花"))))
    assert told.startswith(f"{path} does not match vocab.data.")
    assert told.endswith(f"elmo-zh vocab --run {tmp_path} --force")


# Given words: those of a bundle or of a file


@pytest.mark.parametrize(
    ("settings", "words", "counts"),
    [
        # All words that occur twice, and the given words in their places; 海 and 草 do not occur in the text.
        ({"size": 0, "min_count": 2}, ["好", "天", "花", "苹果", "行", "海", "草"], [5, 3, 2, 2, 1, 0, 0]),
        ({"size": 8, "min_count": 1}, ["好", "天", "行", "海", "草"], [5, 3, 1, 0, 0]),
        ({"size": 7, "min_count": 1}, ["好", "行", "海", "草"], [5, 1, 0, 0]),
        ({"size": 6, "min_count": 1}, ["行", "海", "草"], [1, 0, 0]),
        ({"size": 4, "min_count": 1}, ["行", "海", "草"], [1, 0, 0]),
        ({"size": 0, "min_count": 1, "words": "file"}, ["行", "海", "草"], [1, 0, 0]),
    ],
)
def test_given_words_have_a_row_in_any_case(
    tmp_path: Path, settings: dict[str, int | str], words: list[str], counts: list[int]
) -> None:
    built = build(segmented(tmp_path, TEXT), ["草", "行", "海"], **settings)
    assert list(built.vocabulary.tokens) == [*SPECIALS, *words]
    assert list(built.counts[3:]) == counts
    assert list(built.counts[:3]) == [5, 5, 19 - sum(counts)]
    assert built.spelling.counts["</W>"] == built.counts[UNKNOWN_ID]
    assert built.absent == {"海", "草"}
    # A file with counts of zero can be read back.
    save_counts(tmp_path / "vocab.counts", zip(built.vocabulary.tokens, built.counts, strict=True))
    assert load_counts(tmp_path / "vocab.counts", built.vocabulary) == list(built.counts)


def test_a_list_without_words(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("<S>\n</S>\n<UNK>\n\n", encoding="utf-8")
    assert message_of(RunError, lambda: load_words(path)).startswith(f"{path} contains no words. Use a file with one")


# Words that the vocabulary refuses, by `vocab.refuse`


PRIVATE = ["13812345678", "1234567", "a1234567b", "１２３４５６７", "me@mail.example"]
FREE = ["123456", "2024", "@", "163.com", "好@", "苹果"]


@pytest.mark.parametrize(("refuse", "refused"), [(VocabConfig.refuse, PRIVATE), ("", []), ("果", ["苹果"])])
def test_refused_words_become_unknown_and_are_counted(tmp_path: Path, refuse: str, refused: list[str]) -> None:
    lines = [" ".join([*PRIVATE, *FREE])] * 3
    built = build(segmented(tmp_path, lines), min_count=2, refuse=refuse)
    assert set(built.vocabulary.tokens) == {*SPECIALS, *PRIVATE, *FREE} - set(refused)
    assert built.num_refused == len(refused)
    assert built.counts[UNKNOWN_ID] == 3 * len(refused)


# Unknown words, in bounded memory


def test_the_rarer_half_is_forgotten() -> None:
    unknown = BoundedCounts[str](10)
    unknown.add(["花", "花", *"abcdefghi"])
    assert unknown.counts == {"花": 2, **dict.fromkeys("abcdefghi", 1)}
    unknown.add({"花": 5, "j": 1})
    assert len(unknown.counts) == 5
    assert unknown.counts["花"] == 7
