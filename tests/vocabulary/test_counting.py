"""Words counted by file and merged, against a plain Counter."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.config import VocabConfig
from elmo_zh.corpus.text_files import iter_sentences
from elmo_zh.run.job import Work
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.vocabulary import selection as counting
from elmo_zh.vocabulary.selection import WordCounts, count_words, select_vocabulary
from elmo_zh.vocabulary.spelling import SpellingModel
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary, save_counts

FILES = ("vocab.data", "vocab.counts", "character_counts.tsv")
WORD = st.one_of(
    st.sampled_from(
        ["好", "天", "苹果", "<S>", "</S>", "<UNK>", "</W>", "a\tb", "\u2028", "\ufeff", "𠀀", "｡", "\x85"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters=" \n"), min_size=1, max_size=3),
)
LINE = st.lists(WORD, max_size=7).map(" ".join)
TEXTS = st.lists(st.lists(LINE, max_size=7).map(lambda lines: "".join(f"{line}\n" for line in lines)), max_size=7)


def write_texts(folder: Path, texts: Sequence[str]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"train-{number:05d}.txt" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text.encode())
    return paths


def written(folder: Path, counted: WordCounts, config: VocabConfig, words: Sequence[str]) -> dict[str, Any]:
    built = select_vocabulary(counted, config, words)
    built.vocabulary.save(folder / FILES[0])
    save_counts(folder / FILES[1], zip(built.vocabulary.tokens, built.counts, strict=True))
    built.spelling.save(folder / FILES[2])
    figures = {"distinct": built.num_distinct_words, "coverage": built.coverage}
    return figures | {name: (folder / name).read_bytes() for name in FILES}


def oracle(folder: Path, paths: Iterable[Path], config: VocabConfig, given: Sequence[str]) -> dict[str, Any]:
    """Compute the same with one Counter in memory."""
    counter: Counter[str] = Counter()
    num_sentences = 0
    for sentence in iter_sentences(paths):
        counter.update(sentence)
        num_sentences += 1
    by_rank = sorted({*counter, *given}, key=lambda word: (-counter[word], word))
    by_rank = [word for word in by_rank if word not in SPECIALS]
    frequent = [word for word in by_rank if word not in given and counter[word] >= config.min_count and counter[word]]
    room = len(frequent) if not config.size else max(0, config.size - 3 - len(set(given) - set(SPECIALS)))
    kept = {*given, *(frequent[:room] if not config.words else [])}
    rows = [word for word in by_rank if word in kept]
    unknown = {word: count for word, count in counter.items() if word not in rows}
    vocabulary = Vocabulary((*SPECIALS, *rows))
    vocabulary.save(folder / FILES[0])
    totals = (num_sentences, num_sentences, sum(unknown.values()))
    counts = [*totals, *(counter[word] for word in rows)]
    save_counts(folder / FILES[1], zip(vocabulary.tokens, counts, strict=True))
    SpellingModel.build(unknown).save(folder / FILES[2])
    known = sum(counter[word] for word in rows)
    figures: dict[str, Any] = {
        "distinct": len(counter),
        "coverage": known / max(1, known + sum(unknown.values())),
    }
    return figures | {name: (folder / name).read_bytes() for name in FILES}


@settings(deadline=None, max_examples=71)
@given(
    texts=TEXTS,
    size=st.sampled_from([0, 4, 5, 7, 11]),
    min_count=st.integers(1, 3),
    words=st.lists(WORD, max_size=5, unique=True),
    only_given=st.booleans(),
)
def test_the_files_are_those_of_a_plain_counter(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    size: int,
    min_count: int,
    words: list[str],
    only_given: bool,
) -> None:
    folder = tmp_path_factory.mktemp("counts")
    config = VocabConfig(size=size, min_count=min_count, words="file" if only_given else "")
    paths = write_texts(folder, texts)
    with pytest.MonkeyPatch.context() as patch:
        # Runs are merged two at a time, from blocks of a few bytes.
        patch.setattr(counting, "MAX_MERGED_RUNS", 2)
        patch.setattr("elmo_zh.corpus.text_files.BLOCK_BYTES", 5)
        counted = count_words(paths, Work(folder / "parts", SilentReporter()))
    assert written(folder, counted, config, words) == oracle(folder, paths, config, words)
