"""Words outside the vocabulary are split into known words, in training and afterwards (text.split_unknown)."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
from contract.command_line import SampleRun, elmo_zh, settings, succeed

from elmo_zh import ElmoEmbedder
from elmo_zh.id_store import load_id_store
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary, load_vocabulary


def test_the_longest_known_word_comes_first() -> None:
    """By hand; 龘 is unknown by itself, and iPhone15 has no Han character."""
    vocabulary = Vocabulary((*SPECIALS, "苹果", "苹", "树", "果树", "我", "们"))
    tokens = ["苹果", "苹果树", "我们家", "龘苹", "iPhone15", "，", "<S>", "果"]
    parts = ["苹果", "苹果", "树", "我", "们", "家", "龘", "苹", "iPhone15", "，", "<S>", "果"]
    assert vocabulary.split(tokens) == parts
    assert vocabulary.split(tokens, kept={"我们家"}) == [*parts[:3], "我们家", *parts[6:]]


def test_text_is_split_alike_in_training_and_in_use(sample_run: SampleRun, tmp_path: Path) -> None:
    """Against a regular expression with the words of the vocabulary, longest first."""
    run = tmp_path / "run"
    changes = settings("text.split_unknown=true", "vocab.size=600")
    succeed("pipeline", sample_run.corpus, "--run", run, "--config", sample_run.config, *changes)
    vocabulary = load_vocabulary(run / "vocab.data")
    words = sorted(vocabulary.tokens[3:], key=len, reverse=True)
    longest = re.compile("|".join([*map(re.escape, words), "."]))

    def split(line: str) -> list[str]:
        is_whole = re.compile("|".join([*map(re.escape, words), "[^\u4e00-\u9fff]+"])).fullmatch
        return [part for word in line.split(" ") for part in ([word] if is_whole(word) else longest.findall(word))]

    lines = (run / "segmented" / "train-00000.txt").read_text(encoding="utf-8").splitlines()
    expected = [split(line) for line in lines]
    assert sum(map(len, expected)) > 1.2 * sum(len(line.split(" ")) for line in lines)
    store = load_id_store(run / "ids", vocabulary)
    for number, tokens in enumerate(expected):
        assert store.train[number].tolist() == vocabulary.encode(tokens)
    counted = Counter(token if token in vocabulary else "<UNK>" for tokens in expected for token in tokens)
    counts = dict(line.split("\t") for line in (run / "vocab.counts").read_text(encoding="utf-8").splitlines())
    assert {word: int(count) for word, count in counts.items() if count != "0"} == {
        **counted,
        "<S>": len(lines),
        "</S>": len(lines),
    }
    unknown = sum(token not in vocabulary for tokens in expected for token in tokens)
    assert f"</W>\t{unknown}\n" in (run / "character_counts.tsv").read_text(encoding="utf-8")

    embedder = ElmoEmbedder.load(run / "model")
    sentence = "今天天气很好，我们去公园散步。"
    assert embedder.tokens(sentence) == split(" ".join(ElmoEmbedder.load(sample_run.model).tokens(sentence)))
    assert elmo_zh("info", run / "model", "--check").status == 0
    assert elmo_zh("info", run / "model", "--json").result()["text"]["split_unknown"] is True
    evaluated = ("evaluate", run / "segmented" / "heldout-00000.txt", "--segmented", "--model", run / "model", "--json")
    figures = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    in_training = [each["heldout_bits_per_character"] for each in figures if each.get("heldout_set") == "full"][-1]
    measured = json.loads(succeed(*evaluated).stdout)["bits_per_character"]
    np.testing.assert_allclose(measured, in_training, rtol=1e-5)
