"""Substitutes of a word: against the NumPy oracle, and the command with words that the segmenter cuts across."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contract.command_line import elmo_zh, succeed
from drawn_bundles import SHAPES, WORDS, write_model
from parity import numpy_oracle
from parity.numpy_bilm import Array, run_bilm

from elmo_zh import ElmoEmbedder
from elmo_zh.config import TextConfig
from elmo_zh.embed import substitutes as module
from elmo_zh.embed.substitutes import best_rows
from elmo_zh.reader.token_layer import Composition
from elmo_zh.vocabulary.vocabulary import Vocabulary

SENTENCES = (["我们", "今天", "吃", "苹果", "。"], ["苹果"], ["梨", "今天"], ["今天"] * 11)
SENTENCE = "我昨天买了一个苹果"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model that reads raw text with jieba."""
    folder = tmp_path_factory.mktemp("models") / "drawn"
    return write_model(folder, SHAPES["token"], text=TextConfig(), with_softmax=True)


def log_softmax(scores: Array) -> Array:
    shifted = scores - scores.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


def has_letter(token: str) -> bool:
    return re.search(r"[^\W_]", token) is not None


def predictions(oracle: numpy_oracle.Bundle, tokens: list[str], before: int, after: int) -> tuple[Array, Array]:
    """What the forward LM predicts after the token `before` and the backward LM before `after`; marks are tokens."""
    activations, _ = run_bilm(oracle.bilm, numpy_oracle.token_vectors(oracle, tokens))
    forward, backward = np.split(activations[-1], 2, axis=1)
    weight, bias = oracle.softmax_weight, oracle.softmax_bias
    return log_softmax(weight @ forward[before] + bias), log_softmax(weight @ backward[after] + bias)


def oracle_logs(
    oracle: numpy_oracle.Bundle, tokens: list[str], position: int, ranking: str, own_row: Array | None
) -> tuple[Array, Array, Array]:
    """The log-probabilities of all rows at a position, together, under the forward LM and under the backward LM."""
    word, size = tokens[position], len(oracle.softmax_bias)
    forward, backward = predictions(oracle, tokens, position, position + 2)
    rows = np.arange(size)
    prior = np.log(np.log((rows + 2) / (rows + 1)) / np.log(size + 1))
    if ranking == "slot":
        scores = forward + backward - 0.5 * prior
    else:
        patterns = [each for each in "和、或而并" if each in oracle.vocab]
        left, right = [*tokens[:position], word], [word, *tokens[position + 1 :]]
        if patterns:
            own = [predictions(oracle, [*left, each], len(left) + 1, 0)[0] for each in patterns]
            forward = log_softmax(0.2 * forward + 0.8 * np.mean(own, axis=0))
            own = [predictions(oracle, [each, *right], 0, 1)[1] for each in patterns]
            backward = log_softmax(0.2 * backward + 0.8 * np.mean(own, axis=0))
        scores = forward + backward - 0.4 * prior
        if own_row is not None:
            centred = oracle.softmax_weight - oracle.softmax_weight.mean(axis=0)
            own_row = own_row - oracle.softmax_weight.mean(axis=0)
            scores += 8 * centred @ own_row / np.linalg.norm(centred, axis=1) / np.linalg.norm(own_row)
        scores[[each == word for each in oracle.vocab[:size]]] = -np.inf
    scores[:3] = -np.inf
    return scores, forward, backward


@pytest.mark.parametrize("mode", ["token", "character"])
@pytest.mark.parametrize(("ranking", "patterns"), [("slot", ""), ("pattern", ""), ("pattern", "而并、")])
def test_substitutes_are_those_of_the_oracle(
    tmp_path: Path, mode: str, ranking: str, patterns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_SCORES", 8 * 7)
    with_punctuation = mode == "character"
    path = write_model(tmp_path / "model", SHAPES[mode], words=(*WORDS, *patterns), with_softmax=True)
    oracle = numpy_oracle.load_bundle(path)
    rows = dict(zip(oracle.vocab, oracle.softmax_weight, strict=True))
    places = [(tokens, position) for tokens in SENTENCES for position in range(len(tokens))]
    answers = ElmoEmbedder.load(path).substitutes_many(places, 100, ranking=ranking, with_punctuation=with_punctuation)
    for (tokens, position), found in zip(places, answers, strict=True):
        word = tokens[position]
        scores, *logs = oracle_logs(oracle, tokens, position, ranking, rows.get(word))
        if has_letter(word) and not with_punctuation:
            scores[[not has_letter(each) for each in oracle.vocab]] = -np.inf
        combined, forward, backward = map(np.exp, (log_softmax(scores), *logs))
        order = np.argsort(-combined)[: np.count_nonzero(combined)]
        assert [each.word for each in found.best] == [oracle.vocab[row] for row in order]
        assert [each.rank for each in found.best] == list(range(1, len(order) + 1))
        for name, expected in (
            ("probability", combined),
            ("forward_probability", forward),
            ("backward_probability", backward),
        ):
            np.testing.assert_allclose([getattr(each, name) for each in found.best], expected[order], rtol=1e-4)
        own = [each for each in found.best if each.word == word]
        assert (len(own), found.word) == (ranking == "slot" and word in oracle.vocab, word)
        assert [found.own] == (own or [None])
        assert found.words == [each.word for each in found.best if each.word != word]


def test_a_word_outside_the_vocabulary_is_read_by_its_parts(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model", SHAPES["token"], words=(*WORDS, "和"), with_softmax=True)
    oracle = numpy_oracle.load_bundle(path)
    vocabulary, parts = Vocabulary(oracle.vocab), [oracle.vocab.index(each) for each in ("吃", "苹果")]
    tables = (np.float32(oracle.token_layer), np.float32(oracle.softmax_weight))
    row, softmax_row = (Composition.learn(each, vocabulary).row(parts) for each in tables)
    # For the oracle it is a word of the vocabulary whose row in the softmax is given apart.
    known = replace(oracle, vocab=[*oracle.vocab, "吃苹果"], token_layer=np.vstack([oracle.token_layer, row]))
    scores, _, _ = oracle_logs(known, tokens := ["我们", "吃苹果", "今天"], 1, "pattern", softmax_row)
    expected = [oracle.vocab[each] for each in np.argsort(-scores) if has_letter(oracle.vocab[each])]
    for unknown, is_read in (("backoff", True), ("unk", False)):
        found = ElmoEmbedder.load(path, unknown=unknown).substitutes(tokens, 1, ranking="pattern")
        assert (found.words == expected[: len(found.words)], found.own) == (is_read, None)


@pytest.mark.parametrize("num_values", [1, 2, 7, 400])
def test_the_best_rows_are_those_of_a_full_sort_with_many_ties(num_values: int) -> None:
    generator = np.random.default_rng(num_values)
    for _ in range(20):
        scores = -generator.integers(0, num_values, 401).astype(np.float32)
        scores[generator.integers(0, 401, 53)] = -np.inf
        candidates = [row for row in range(401) if scores[row] > -np.inf]
        expected = sorted(candidates, key=lambda row: (-scores[row], row))
        for top in (0, 1, 2, 19, 20, 97, len(candidates) - 1, len(candidates), 401, 1000):
            assert best_rows(scores, top).tolist() == expected[:top]
    assert best_rows(np.full(7, -np.inf, np.float32), 3).tolist() == []


def test_a_word_in_its_sentence(bundle: Path) -> None:
    options = ("--model", bundle, "--ranking", "slot", "--json")
    [found] = elmo_zh("substitutes", SENTENCE, "--word", "苹果", *options).result()["occurrences"]
    assert (found["tokens"], found["position"]) == (["我", "昨天", "买", "了", "一个", "苹果"], 5)
    assert (found["start"], found["end"], found["word"]) == (7, 9, "苹果")
    expected = ElmoEmbedder.load(bundle).substitutes(found["tokens"], 5, ranking="slot")
    assert [each["word"] for each in found["substitutes"]] == [each.word for each in expected.best]
    assert found["own"]["rank"] == expected.own.rank


def test_the_word_itself_is_shown_with_its_rank(bundle: Path) -> None:
    options = ("--model", bundle, "--ranking", "slot", "--top", "1")
    table = succeed("substitutes", "我们吃苹果。", "--word", "苹果", *options).stdout.splitlines()
    assert table[0] == "我们 吃 [苹果] 。"
    own = ElmoEmbedder.load(bundle).substitutes(["我们", "吃", "苹果", "。"], 2, ranking="slot").own
    assert any(line.startswith("苹果 ") and line.split()[1] == str(own.rank) for line in table)
    # A word that lies across tokens of the segmenter is cut out.
    across = elmo_zh("substitutes", SENTENCE, "--word", "天买", *options)
    assert across.stdout.startswith("我 昨 [天买] 了 一个 苹果\n")
    assert "segmented again as 我 昨 天买 了 一个 苹果" in across.stderr
    assert "天买 is outside the model's vocabulary" in across.stdout


def test_wrong_words(bundle: Path, tmp_path: Path) -> None:
    arguments = ("--model", bundle)
    without = write_model(tmp_path / "without", SHAPES["token"], text=TextConfig())
    for typed, told in (
        (("今天吃", "--word", "苹果"), "苹果 is not a word of the sentence. Choose one of its words: 今天 吃"),
        (("今天", "--word", "今天", "--model", without), f"{without} has no softmax"),
    ):
        assert elmo_zh("substitutes", *arguments, *typed).only_error().startswith(told)
    for typed in (("今天",), ("今天", "--word", " "), ("--word", "今天")):
        answer = elmo_zh("substitutes", *typed, *arguments)
        assert (answer.status, answer.stdout) == (2, "")
