"""Substitutes of a word: against the NumPy oracle, and the command with words that the segmenter cuts across."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import elmo_zh
from drawn_bundles import SHAPES, write_model
from parity import numpy_oracle
from parity.numpy_bilm import Array, run_bilm

from elmo_zh import ElmoEmbedder
from elmo_zh.config import TextConfig
from elmo_zh.embed import substitutes as module
from elmo_zh.embed.substitutes import PRIOR_POWER, best_rows

pytestmark = pytest.mark.usefixtures("empty_folder")

SENTENCES = (["我们", "今天", "吃", "苹果", "。"], ["苹果"], ["梨", "今天"], ["今天"] * 29)
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


def oracle_logs(
    oracle: numpy_oracle.Bundle, tokens: list[str], position: int, *, with_punctuation: bool
) -> tuple[Array, Array, Array]:
    """The log-probabilities of all rows at a position, together, under the forward LM and under the backward LM."""
    activations, _ = run_bilm(oracle.bilm, numpy_oracle.token_vectors(oracle, tokens))
    forward_top, backward_top = np.split(activations[-1], 2, axis=1)
    forward, backward = (
        log_softmax(oracle.softmax_weight @ top + oracle.softmax_bias)
        for top in (forward_top[position], backward_top[position + 2])
    )
    rows = np.arange(len(oracle.vocab))
    prior = np.log((rows + 2) / (rows + 1)) / np.log(len(rows) + 1)
    scores = forward + backward - PRIOR_POWER * np.log(prior)
    scores[:3] = -np.inf
    if has_letter(tokens[position]) and not with_punctuation:
        scores[[not has_letter(word) for word in oracle.vocab]] = -np.inf
    return log_softmax(scores), forward, backward


@pytest.mark.parametrize("mode", ["token", "character"])
@pytest.mark.parametrize("with_punctuation", [False, True])
def test_substitutes_are_those_of_the_oracle(
    tmp_path: Path, mode: str, with_punctuation: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_SCORES", 8 * 7)
    path = write_model(tmp_path / "model", SHAPES[mode], with_softmax=True)
    oracle = numpy_oracle.load_bundle(path)
    embedder = ElmoEmbedder.load(path)
    places = [(tokens, position) for tokens in SENTENCES for position in range(len(tokens))]
    answers = embedder.substitutes_many(places, 100, with_punctuation=with_punctuation)
    for (tokens, position), found in zip(places, answers, strict=True):
        logs = oracle_logs(oracle, tokens, position, with_punctuation=with_punctuation)
        combined, forward, backward = map(np.exp, logs)
        order = np.argsort(-combined)[: np.count_nonzero(combined)]
        assert len(order) == len(oracle.vocab) - (3 if with_punctuation or tokens[position] == "。" else 4)
        assert [each.word for each in found.best] == [oracle.vocab[row] for row in order]
        assert [each.rank for each in found.best] == list(range(1, len(order) + 1))
        for name, expected in (
            ("probability", combined),
            ("forward_probability", forward),
            ("backward_probability", backward),
        ):
            np.testing.assert_allclose([getattr(each, name) for each in found.best], expected[order], rtol=1e-4)
        assert sum(each.probability for each in found.best) == pytest.approx(1, rel=1e-5)
        own = [each for each in found.best if each.word == tokens[position]]
        assert [found.own] == (own or [None])
        assert found.word == tokens[position]
        assert found.words == [each.word for each in found.best if each.word != tokens[position]]


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


def test_the_whole_vocabulary_is_not_sorted_for_a_place(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_sizes = []
    argsort = np.argsort

    def counting(values: Array, **options: Any) -> Array:
        sorted_sizes.append(len(values))
        return argsort(values, **options)

    monkeypatch.setattr(np, "argsort", counting)
    found = ElmoEmbedder.load(bundle).substitutes(["我们", "吃", "。"], 1, top=2)
    monkeypatch.undo()
    assert (len(found.best), sorted_sizes) == (2, [2])


def test_the_token_itself_is_not_read(bundle: Path) -> None:
    embedder = ElmoEmbedder.load(bundle)
    first, second = (embedder.substitutes(["我们", word, "。"], 1) for word in ("吃", "梨"))
    assert first.best == second.best
    assert (second.own, first.own in first.best) == (None, True)
    assert embedder.substitutes(["我们", "吃", "。"], 1, top=2).best == first.best[:2]


def test_no_substitutes_and_a_position_of_numpy(bundle: Path) -> None:
    embedder = ElmoEmbedder.load(bundle)
    assert embedder.substitutes(["我们", "苹果"], 1, 0).best == ()
    assert embedder.substitutes(["我们", "苹果"], np.int64(1)) == embedder.substitutes(["我们", "苹果"], 1)  # type: ignore[arg-type]


def test_a_word_and_its_position_give_the_same(bundle: Path) -> None:
    by_word = elmo_zh("substitutes", SENTENCE, "--word", "苹果", "--model", bundle, "--json").result()
    by_place = elmo_zh("substitutes", SENTENCE, "--position", "5", "--model", bundle, "--json").result()
    assert by_word == by_place
    [found] = by_word["occurrences"]
    assert (found["tokens"], found["position"]) == (["我", "昨天", "买", "了", "一个", "苹果"], 5)
    assert (found["start"], found["end"], found["word"]) == (7, 9, "苹果")
    expected = ElmoEmbedder.load(bundle).substitutes(found["tokens"], 5)
    assert [each["word"] for each in found["substitutes"]] == [each.word for each in expected.best]
    assert found["own"]["rank"] == next(each.rank for each in expected.best if each.word == "苹果")
    without = elmo_zh("substitutes", SENTENCE, "--word", "苹果", "--model", bundle, "--json", "--without-word").result()
    assert [each["word"] for each in without["occurrences"][0]["substitutes"]] == expected.words
    assert "own" not in without["occurrences"][0]


def test_punctuation_stands_for_punctuation_or_if_it_is_asked_for(bundle: Path) -> None:
    shown = {}
    for place, options in (("2", ()), ("2", ("--with-punctuation",)), ("3", ())):
        typed = ("我们吃苹果。", "--position", place, "--model", bundle, "--json", *options)
        [found] = elmo_zh("substitutes", *typed).result()["occurrences"]
        shown[place, options] = {each["word"] for each in found["substitutes"]}
    words, everything, marks = shown.values()
    assert words == everything - {"。"} != everything == marks


def test_a_word_across_tokens_is_cut_out(bundle: Path) -> None:
    answer = elmo_zh("substitutes", SENTENCE, "--word", "天买", "--model", bundle)
    assert (
        "天买 is not a word of the segmentation 我 昨天 买 了 一个 苹果, so the sentence was cut to"
        " 我 昨 天买 了 一个 苹果." in answer.stderr
    )
    assert answer.stdout.startswith("我 昨 [天买] 了 一个 苹果\n")
    assert "天买 is outside the model's vocabulary, so it has no rank.\n" in answer.stdout


def test_the_word_itself_is_shown_with_its_rank(bundle: Path) -> None:
    answer = elmo_zh("substitutes", "我们吃苹果。", "--word", "苹果", "--model", bundle, "--top", "1")
    assert answer.status == 0
    table = answer.stdout.splitlines()
    assert table[0] == "我们 吃 [苹果] 。"
    own = ElmoEmbedder.load(bundle).substitutes(["我们", "吃", "苹果", "。"], 2).own
    assert any(line.startswith("苹果 <") and line.split()[2] == str(own.rank) for line in table)
    following = "elmo-zh substitutes --file FILE --word 苹果"
    assert table[-1] == f"1 occurrence of 苹果. Next, see those of a text: {following}"


@pytest.mark.parametrize(
    ("text", "segmented"), [("苹果。\n我们吃苹果苹果\n\n今天\n", False), ("苹果 。\n苹果树\n", True)]
)
def test_every_occurrence_in_a_file(bundle: Path, text: str, segmented: bool) -> None:
    Path("a.txt").write_text(text, encoding="utf-8")
    options = ["--segmented"] if segmented else []
    result = elmo_zh("substitutes", "--file", "a.txt", "--word", "苹果", "--model", bundle, "--json", *options).result()
    found = [(each["line"], each["start"]) for each in result["occurrences"]]
    assert found == ([(0, 0)] if segmented else [(0, 0), (1, 3), (1, 5)])
    assert all(each["word"] == "苹果" for each in result["occurrences"])
    assert json.dumps(result["occurrences"], ensure_ascii=False).count("<UNK>") == 0


def test_an_occurrence_in_a_folder_names_its_file(bundle: Path) -> None:
    Path("texts").mkdir()
    Path("texts/a.txt").write_text("今天\n苹果。\n", encoding="utf-8")
    with zipfile.ZipFile("texts/b.zip", "w") as archive:
        archive.writestr("c.txt", "今天\n")
        archive.writestr("d/e.txt", "今天\n我们吃苹果。\n")
    arguments = ("substitutes", "--file", "texts", "--word", "苹果", "--model", bundle, "--top", "1")
    places = [("texts/a.txt", 1), ("texts/b.zip/d/e.txt", 1)]
    found = elmo_zh(*arguments, "--json").result()["occurrences"]
    assert [(each["source"], each["line"]) for each in found] == places
    lines = elmo_zh(*arguments).stdout.splitlines()
    assert [line for line in lines if line.startswith("texts/")] == [f"{name}:{line + 1}" for name, line in places]
    alone = elmo_zh("substitutes", "我们吃苹果。", *arguments[3:], "--json").result()["occurrences"]
    assert ["source" in each for each in alone] == [False]


def test_wrong_words(bundle: Path, tmp_path: Path) -> None:
    Path("a.txt").write_text("今天\n", encoding="utf-8")
    arguments = ("--model", bundle)
    for typed, told in (
        (
            ("今天吃", "--word", "苹果"),
            "苹果 is not in the sentence: '今天吃' has 2 tokens (今天 吃). Give a word of it.",
        ),
        (("今天吃", "--position", "2"), "--position 2: '今天吃' has 2 tokens (今天 吃). Positions are counted from 0."),
        (("", "--word", "苹果"), "The sentence is empty. Give one that has the word."),
        (("　 ", "--position", "0"), "The sentence is empty. Give one that has the word."),
        (("--file", "a.txt", "--word", "苹果"), "a.txt: no line has the word 苹果. Give a word of the text."),
    ):
        assert elmo_zh("substitutes", *typed, *arguments).only_error() == told
    for typed in (
        ("今天",), ("--word", "今天"), ("今天", "--word", "今天", "--position", "0"), ("今天", "--word", " "),
        ("今天", "--file", "a.txt", "--word", "今天"), ("--file", "a.txt", "--position", "0"),
    ):  # fmt: skip
        answer = elmo_zh("substitutes", *typed, *arguments)
        assert (answer.status, answer.stdout) == (2, "")
    without = write_model(tmp_path / "without", SHAPES["token"], text=TextConfig())
    told = elmo_zh("substitutes", "今天", "--position", "0", "--model", without).only_error()
    assert told.startswith(f"{without} has no softmax, so it gives vectors but no probabilities.")
