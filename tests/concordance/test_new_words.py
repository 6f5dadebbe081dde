"""Candidates for new words, worked by hand, and words of one's own that the segmenter keeps whole."""

from collections.abc import Iterable
from math import log2
from pathlib import Path

import pytest
from contract.command_line import SampleRun, elmo_zh
from contract.dumps import read_dump

from elmo_zh import ContextIndex
from elmo_zh.concordance import NewWordOptions
from elmo_zh.concordance.counts import branching_entropies, find_new_words, split_information
from elmo_zh.run.reporter import Reporter, SilentReporter


def test_the_measures_worked_by_hand() -> None:
    """Division of 甲乙丙 where the parts go together by chance most: 甲乙 and 丙, 4 * 32 / (8 * 8)."""
    counts = {"甲乙丙": 4, "甲": 8, "乙丙": 4, "甲乙": 8, "丙": 8}
    assert split_information("甲乙丙", counts, total=32) == log2(4 * 32 / (8 * 8))
    assert split_information("甲乙丙", {**counts, "甲乙": 0}, total=32) == log2(4 * 32 / (4 * 8))  # dropped: at least 4
    # To the left 上 (2), 下 (1) and a border; to the right four borders, which are four neighbours.
    found = branching_entropies(["上甲乙", "上甲乙", "下甲乙", "甲乙"], {"甲乙"})
    assert found == {"甲乙": pytest.approx(0.5 * 1 + 2 * 0.25 * 2)}


def test_candidates_are_unknown_strings_that_stick_together() -> None:
    texts = [f"{left}负载均衡{right}" for left, right in zip("天地玄黄宇宙洪荒", "日月盈昃辰宿列张", strict=True)]

    def runs(_: Reporter) -> Iterable[str]:
        return texts

    limits = NewWordOptions(min_count=3, min_pmi=1, min_entropy=1)
    [found] = find_new_words(runs, lambda word: False, limits, SilentReporter())
    assert (found.word, found.count) == ("负载均衡", 8)
    assert found.entropy == pytest.approx(3)
    assert find_new_words(runs, lambda word: word == "负载均衡", limits, SilentReporter()) == []


def test_the_list_of_words_is_a_user_dictionary(tmp_path: Path, sample_run: SampleRun) -> None:
    """Its words become tokens in every command that takes one, and are candidates no more."""
    text = [f"{left}负载均衡{right}。" for left, right in zip("天地玄黄宇宙", "日月盈昃辰宿", strict=True)]
    Path("a.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    assert elmo_zh("words", "a.txt", "--output", "words.tsv", "--min-count", "6", "--min-pmi", "1").status == 0
    rows = [row.split("\t")[:2] for row in Path("words.tsv").read_text("utf-8").splitlines()]
    assert rows == [["word", "count"], ["负载均衡", "6"]]
    own = "--user-dictionary", "words.tsv"
    assert elmo_zh("words", "a.txt", *own, "--min-count", "6", "--min-pmi", "1", "--json").result()["count"] == 0
    assert elmo_zh("concordance", "负载*", "a.txt", *own, "--json").result()["concordance"][0]["node"] == "负载均衡"
    options = "--model", sample_run.model, *own
    assert elmo_zh("embed", "a.txt", *options).status == 0
    assert "负载均衡" in read_dump(Path("a.txt.hdf5"))[1][0]
    assert elmo_zh("index", "a.txt", *options, "--output", "a.index").status == 0
    Path("words.tsv").unlink()  # the index has a copy
    index = ContextIndex.load("a.index")
    assert "负载均衡" in index.words
    typed = ("neighbours", "很", "--in", "它很负载均衡", "--index", "a.index", "--model", sample_run.model)
    assert elmo_zh(*typed, "--json").result()["tokens"] == ["它", "很", "负载均衡"]
    Path("a.index/user_dictionary.txt").write_text("别的\n", encoding="utf-8")
    message = elmo_zh(*typed).only_error()
    assert message.startswith("a.index/user_dictionary.txt is damaged")
