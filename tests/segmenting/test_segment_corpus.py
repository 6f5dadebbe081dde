"""The segment stage, from files to files."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import message_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.sources import Sources, find_sources
from elmo_zh.corpus.text_files import iter_sentences
from elmo_zh.errors import CorpusError
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.segmenting.segment_corpus import SegmentCounts, segment_corpus

CHARACTERS = TextConfig(segmenter="character", num_workers=1)
AS_IT_STANDS = TextConfig(
    segmenter="whitespace",
    split_sentences=False,
    unicode_form="none",
    fold_fullwidth=False,
    remove_control=False,
    collapse_whitespace=False,
    heldout_share=0.0,
    drop_duplicates=False,
    num_workers=1,
)


def corpus_of(folder: Path, *texts: str) -> Sources:
    folder.mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text, encoding="utf-8", newline="\n")
    return find_sources([str(folder)])


def segment(corpus: Sources, output: Path, config: TextConfig) -> SegmentCounts:
    return segment_corpus(corpus, output, config, None, SilentReporter()).counts


def files_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_bytes().decode("utf-8") for path in sorted(folder.glob("*.txt"))}


def training_text(folder: Path) -> str:
    return "".join(text for name, text in files_of(folder).items() if name.startswith("train"))


WORDS = ["今天", "天气", "很好", "苹果", "我们", "一起", "去", "北京", "大学", "吃饭", "研究", "生命", "起源", "的"]


def many_paragraphs(count: int, seed: int = 3) -> list[str]:
    """Paragraphs of one to five sentences of words that jieba has to find."""
    generator = random.Random(seed)
    return [
        "".join(
            "".join(generator.choices(WORDS, k=generator.randint(3, 11))) + generator.choice("。！？")
            for _ in range(generator.randint(1, 5))
        )
        for _ in range(count)
    ]


def test_files_and_counts_worked_out_by_hand(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "c", "好！ab？\n\n\u3000\n天　气", "雨。\r\n")
    counts = segment(corpus, tmp_path / "out", replace(CHARACTERS, heldout_share=0.0))
    assert files_of(tmp_path / "out") == {"train-00000.txt": "好 ！\na b ？\n天 气\n雨 。\n"}
    assert counts == SegmentCounts(
        files=2, lines=5, characters=11, kept_characters=10, dropped={"lines without a word": 1},
        train_sentences=4, train_tokens=9, heldout_sentences=0, heldout_tokens=0,
    )  # fmt: skip


def test_training_and_heldout_text_are_all_of_the_text(tmp_path: Path) -> None:
    paragraphs = many_paragraphs(1009)
    counts = segment(corpus_of(tmp_path / "c", "\n".join(paragraphs)), tmp_path / "out", CHARACTERS)
    files = {"heldout": files_of(tmp_path / "out")["heldout-00000.txt"], "train": training_text(tmp_path / "out")}
    heldout, train = (text.splitlines() for text in files.values())
    assert (len(heldout), len(train)) == (counts.heldout_sentences, counts.train_sentences)
    assert 200 <= len(heldout) < 205
    tokens = {name: text.split() for name, text in files.items()}
    assert (counts.heldout_tokens, counts.train_tokens) == tuple(len(found) for found in tokens.values())
    everything = sorted("".join(found) for found in tokens.values())
    assert sorted("".join(everything)) == sorted("".join(paragraphs))


def test_shards_of_limited_bytes(tmp_path: Path) -> None:
    config = replace(AS_IT_STANDS, shard_bytes=10)
    corpus = corpus_of(tmp_path / "c", "".join(f"{n}\n" for n in range(13)), "a\nb\n")
    segment(corpus, tmp_path / "out", config)
    assert files_of(tmp_path / "out") == {
        "train-00000.txt": "0\n1\n2\n3\n4\n5\n6\n7\n",
        "train-00001.txt": "8\n9\n10\n11\n12\n",
        "train-00002.txt": "a\nb\n",
    }
    assert len(list(iter_sentences(sorted((tmp_path / "out").glob("*.txt"))))) == 15


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "{path}: no text found. Use files that contain text."),
        (
            "\n \u3000\n\u200b\n".encode(),
            "{path} (lines without a word: 3): no text found. Use files that contain text.",
        ),
        (b"\xff\xfe", "{path}: no text found. Use files that contain text."),
    ],
)
def test_a_corpus_that_cannot_be_used_leaves_everything_as_it_was(tmp_path: Path, content: bytes, message: str) -> None:
    path, output = tmp_path / "a.txt", tmp_path / "out"
    path.write_bytes(content)
    output.mkdir()
    (output / "train-00000.txt").write_text("旧\n", encoding="utf-8")
    told = message_of(CorpusError, lambda: segment(find_sources([str(path)]), output, CHARACTERS))
    assert told.startswith(message.format(path=path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "out"]
    assert files_of(output) == {"train-00000.txt": "旧\n"}


TOKEN = st.text(
    st.one_of(
        st.sampled_from("\u3000\u2028\u2029\x85\x0b\x0c\x1c\t\u200b\ufeff<S>/UNK"),
        st.characters(codec="utf-8", exclude_characters=" \r\n"),
    ),
    min_size=1,
    max_size=5,
)
SENTENCES = st.lists(st.lists(TOKEN, min_size=1, max_size=5), min_size=1, max_size=5)


@settings(deadline=None, max_examples=53)
@given(SENTENCES)
def test_tokens_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[list[str]]
) -> None:
    """White space, separators and marks inside tokens are no more than characters to whoever reads the files."""
    folder = tmp_path_factory.mktemp("tokens")
    sentences = [["开头"], *sentences]
    corpus = corpus_of(folder / "c", "".join(" ".join(sentence) + "\n" for sentence in sentences))
    segment(corpus, folder / "out", AS_IT_STANDS)
    assert list(iter_sentences([folder / "out" / "train-00000.txt"])) == sentences
