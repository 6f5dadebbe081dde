"""Strings, tokens and arrays given to the Python interface: what is taken, and how the rest is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from drawn_bundles import TOKENS, P, add_word2vec, write_model
from messages import message_of, refusal_of

from elmo_zh import Elmo, ElmoEmbedder, LineScorer, Word2Vec, align_to_characters, batch_to_ids, split_sentences
from elmo_zh.config import TextConfig
from elmo_zh.errors import ElmoZhError

WORDS = ("我", "吃", "苹", "果", "。", "今天", "天气")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles") / "model"
    return write_model(path, TOKENS, words=WORDS, text=TextConfig(segmenter="character"))


@pytest.fixture(scope="module")
def embedder(folder: Path) -> ElmoEmbedder:
    return ElmoEmbedder.load(folder, "cpu")


@pytest.fixture(scope="module")
def elmo(folder: Path) -> Elmo:
    return Elmo.from_bundle(folder)


# Raw sentences


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("我吃", "embed takes a list of strings, found the single string '我吃'. Call embed(['我吃'])."),
        (
            [["今天", "天气"]],
            "embed: sentences[0] is list ['今天', '天气'], expected a string. Sentences as lists of tokens go to"
            " embed_tokens([['今天', '天气']]).",
        ),
        (
            np.array([["今天", "天气"]]),
            "embed: sentences[0] is ndarray array(['今天', '天气'], dtype='<U2'), expected a string. Sentences as lists"
            " of tokens go to embed_tokens([['今天', '天气']]).",
        ),
        (["我", None], "embed: sentences[1] is None, expected a string. Leave it out, or give ''."),
        ([float("nan")], "embed: sentences[0] is float nan, expected a string. Leave it out, or give ''."),
        ([b"a"], "embed: sentences[0] is bytes b'a', expected a string. Decode it: value.decode('utf-8')."),
        ([3], "embed: sentences[0] is int 3, expected a string. Convert it: str(value)."),
        (None, 'embed takes a list of strings, found None. Call embed(["今天天气很好"]).'),
        (b"ab", "embed takes a list of strings, found bytes b'ab'. Call embed([\"今天天气很好\"])."),
    ],
)
def test_what_is_no_list_of_raw_sentences(embedder: ElmoEmbedder, given: Any, expected: str) -> None:
    assert refusal_of(TypeError, lambda: embedder.embed(given)) == expected


def test_one_raw_sentence_that_is_none(embedder: ElmoEmbedder) -> None:
    expected = (
        "tokens: sentence is list ['我', '吃'], expected a string. Give it as it was before it was segmented: '我吃'."
    )
    assert refusal_of(TypeError, lambda: embedder.tokens(["我", "吃"])) == expected  # type: ignore[arg-type]
    expected = "prepare: line is None, expected a string. Leave it out, or give ''."
    assert refusal_of(TypeError, lambda: embedder.prepare(None)) == expected  # type: ignore[arg-type]


class NAType:
    """Looks as pandas' NA does from outside; pandas itself is no dependency."""

    def __repr__(self) -> str:
        return "<NA>"

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


def test_an_empty_field_of_pandas(embedder: ElmoEmbedder) -> None:
    told = refusal_of(TypeError, lambda: embedder.embed(["我", NAType()]))  # type: ignore[list-item]
    assert told == "embed: sentences[1] is NAType <NA>, expected a string. Leave it out, or give ''."
    told = refusal_of(TypeError, lambda: embedder.embed([np.float32("nan")]))  # type: ignore[list-item]
    assert told.endswith("Leave it out, or give ''.")
    told = refusal_of(TypeError, lambda: embedder.embed_tokens([["我", NAType()]]))  # type: ignore[list-item]
    assert told.endswith("Leave it out, or give '<UNK>'.")


@pytest.mark.parametrize(
    ("given", "shown"), [(5, "int 5"), ("ab", "the string 'ab'"), ({0: [(0, 1)]}, "dict {0: [(0, 1)]}")]
)
def test_spans_to_keep_that_are_no_list(embedder: ElmoEmbedder, given: Any, shown: str) -> None:
    told = refusal_of(TypeError, lambda: embedder.embed(["我吃"], keep=given))
    assert told == (
        f"embed: keep is {shown}, expected for each sentence a list of spans of characters, such as [[(0, 2)]]."
    )


def test_spans_to_keep_in_whatever_holds_them(embedder: ElmoEmbedder) -> None:
    [expected] = embedder.embed(["今天天气"], keep=[[(0, 2)]])
    held: Any
    for held in (iter([[(0, 2)]]), np.array([[[0, 2]]]), ([np.array([0, 2])],)):
        np.testing.assert_array_equal(embedder.embed(["今天天气"], keep=held)[0], expected)


def test_spans_that_are_none(embedder: ElmoEmbedder) -> None:
    expected = "expected a list of spans of characters, such as [(0, 2)]."
    wrong: Any
    for wrong, shown in (
        ((0, 2), "tuple (0, 2)"),
        (None, "None"),
        ("我", "the string '我'"),
        ([(0, None)], "list [(0, None)]"),
        ([(0.5, 2)], "list [(0.5, 2)]"),
        ([(True, 2)], "list [(True, 2)]"),
    ):
        told = refusal_of(TypeError, lambda wrong=wrong: embedder.prepare("我吃", keep=wrong))
        assert told == f"prepare: keep is {shown}, {expected}"
        told = refusal_of(TypeError, lambda wrong=wrong: embedder.embed(["我吃"], keep=[wrong]))
        assert told == f"embed: keep[0] is {shown}, {expected}"


def test_a_paragraph_that_is_none() -> None:
    told = refusal_of(TypeError, lambda: split_sentences(None))  # type: ignore[arg-type]
    assert told == "split_sentences: paragraph is None, expected a string. Leave it out, or give ''."


# Sentences of tokens


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            "今天 天气",
            " takes a list of sentences, each a list of tokens, found the string '今天 天气'."
            " Call {call}([['今天', '天气']]).",
        ),
        (
            ["今天 天气"],
            ": {name}[0] is the string '今天 天气', expected a list of tokens. Call {call}([['今天', '天气']]){raw}",
        ),
        (
            ["今天", "天气"],
            ": {name}[0] is the string '今天', expected a list of tokens. For one sentence of these tokens call"
            " {call}([['今天', '天气']]){raw}",
        ),
        (
            [["我"], ["吃", None]],
            ": {name}[1][1] is None, expected a string. Leave it out, or give '<UNK>'.",
        ),
        ([[b"a"]], ": {name}[0][0] is bytes b'a', expected a string. Decode it: value.decode('utf-8')."),
        ([b"a"], ": {name}[0] is bytes b'a', expected a list of tokens. Decode it: value.decode('utf-8')."),
        ([["我", 3]], ": {name}[0][1] is int 3, expected a string. Convert it: str(value)."),
        ([[["我"]]], ": {name}[0][0] is list ['我'], expected a string. See docs/python.md."),
        ([None], ": {name}[0] is None, expected a list of tokens. Leave it out, or give []."),
        (
            7,
            ' takes a list of sentences, each a list of tokens, found int 7. Call {call}([["今天", "天气"]]).',
        ),
    ],
)
def test_what_is_no_list_of_token_lists(embedder: ElmoEmbedder, elmo: Elmo, given: Any, expected: str) -> None:
    entries: tuple[tuple[str, str, Callable[[Any], object]], ...] = (
        ("embed_tokens", "sentences", embedder.embed_tokens),
        ("batch_to_ids", "batch", batch_to_ids),
        ("elmo.batch_to_ids", "batch", elmo.batch_to_ids),
    )
    for call, name, entry in entries:
        raw = f", for raw text embed(['{given[0]}'])." if call == "embed_tokens" and isinstance(given, list) else "."
        assert refusal_of(TypeError, lambda entry=entry: entry(given)) == call + expected.format(
            call=call, name=name, raw=raw
        )


def test_tokens_in_whatever_holds_them(embedder: ElmoEmbedder, elmo: Elmo) -> None:
    sentences = [["我", "吃"], ["今天", "天气"]]
    expected = np.stack(embedder.embed_tokens(sentences))
    as_objects = np.empty(2, object)
    as_objects[:] = sentences
    for held in (np.array(sentences), as_objects, tuple(map(tuple, sentences)), [np.array(each) for each in sentences]):
        np.testing.assert_array_equal(np.stack(embedder.embed_tokens(held)), expected)
        assert torch.equal(elmo.batch_to_ids(held), elmo.batch_to_ids(sentences))
        assert torch.equal(batch_to_ids(held), batch_to_ids(sentences))
    np.testing.assert_array_equal(np.stack(embedder.embed_tokens(iter(each) for each in sentences)), expected)
    np.testing.assert_array_equal(
        np.stack([each.vectors for each in embedder.embed_iter(np.array(sentences))]), expected
    )
    [raw] = embedder.embed(np.array(["我吃"]))
    np.testing.assert_allclose(raw, expected[0], rtol=0, atol=1e-6)


def test_tokens_of_one_sentence(embedder: ElmoEmbedder) -> None:
    expected = "find_unknown: tokens is the string '今天', expected a list of tokens. Call find_unknown(['今天'])."
    assert refusal_of(TypeError, lambda: embedder.find_unknown("今天")) == expected
    expected = "vocab_to_cache is the string '今天', expected a list of words"
    assert refusal_of(TypeError, lambda: Elmo.from_bundle(embedder.bundle.path, vocab_to_cache="今天")) == expected


# Sentences of either kind


@pytest.mark.parametrize("call", ["embed_iter", "embed_torch"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("我吃", " takes a list of strings, found the single string '我吃'. Call {call}(['我吃'])."),
        (["我", None], ": sentences[1] is None, expected a string or a list of tokens. Leave it out, or give []."),
        (["我", ["吃", 3]], ": sentences[1][1] is int 3, expected a string. Convert it: str(value)."),
    ],
)
def test_what_is_no_sentence(embedder: ElmoEmbedder, call: str, given: Any, expected: str) -> None:
    assert refusal_of(TypeError, lambda: list(getattr(embedder, call)(given))) == call + expected.format(call=call)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("我 吃", " takes a list of strings, found the single string '我 吃'. Call outputs(['我 吃'])."),
        ([3], ' takes a list of strings or of lists of words, found int 3. Call outputs(["今天 天气 很 好"]).'),
        ([["我", 3]], ": sentences[0][1] is int 3, expected a string. Convert it: str(value)."),
    ],
)
def test_what_has_no_outputs(embedder: ElmoEmbedder, given: Any, expected: str) -> None:
    assert refusal_of(TypeError, lambda: embedder.outputs(given)) == f"outputs{expected}"


def test_padding_of_outputs_is_not_looked_at(embedder: ElmoEmbedder) -> None:
    padded: Any = [["我", "吃"], ["今天", None]]
    assert embedder.outputs(padded, [2, 1])["sequence_len"].tolist() == [2, 1]


# The embedder itself


def test_a_path_where_a_bundle_belongs(folder: Path) -> None:
    expected = "ElmoEmbedder takes a loaded bundle, found 'runs/x'. Call ElmoEmbedder.load('runs/x')."
    assert refusal_of(TypeError, lambda: ElmoEmbedder("runs/x")) == expected  # type: ignore[arg-type]
    expected = "ElmoEmbedder takes a loaded bundle, found nothing. Call ElmoEmbedder.load('runs/latest/model')."
    assert refusal_of(TypeError, lambda: ElmoEmbedder(None)) == expected


def test_a_path_where_a_scorer_needs_a_bundle(embedder: ElmoEmbedder) -> None:
    wrong: Any
    for wrong, shown, path in (
        ("runs/x", "'runs/x'", "runs/x"),
        (None, "nothing", "runs/latest/model"),
        (embedder, f"{embedder!r:.60}", "runs/latest/model"),
    ):
        told = refusal_of(TypeError, lambda wrong=wrong: LineScorer(wrong))
        assert told == f"LineScorer takes a loaded bundle, found {shown}. Call LineScorer.load({path!r})."


def test_numbers_that_are_none(embedder: ElmoEmbedder) -> None:
    wrong: Any
    for wrong in ("x", 0, 2.5):
        told = refusal_of(ValueError, lambda wrong=wrong: ElmoEmbedder(embedder.bundle, batch_tokens=wrong))
        assert told == f"ElmoEmbedder: batch_tokens={wrong!r}, expected a whole number of 1 or more"
    [sentence] = embedder.embed(["我吃"], return_tokens=True)
    for wrong in ("x", -1, 2.5, None):
        told = refusal_of(
            ValueError, lambda wrong=wrong: align_to_characters(sentence.vectors, sentence.offsets, wrong)
        )
        assert told == f"align_to_characters: num_characters={wrong!r}, expected a whole number of 0 or more"


def test_a_word_in_place_of_words(folder: Path, tmp_path: Path) -> None:
    word2vec = Word2Vec.load(add_word2vec(write_model(tmp_path / "model", TOKENS, words=WORDS, text=TextConfig())))
    wrong: Any = "今天"
    told = refusal_of(TypeError, lambda: word2vec.of_words(wrong))
    assert told == "of_words: words is the string '今天', expected a list of tokens. Call of_words(['今天'])."
    wrong = [5]
    assert "words[0] is int 5, expected a string" in refusal_of(TypeError, lambda: word2vec.of_words(wrong))


def test_a_sentence_shows_its_tokens(embedder: ElmoEmbedder) -> None:
    [sentence] = embedder.embed(["我吃"], return_tokens=True)
    assert repr(sentence) == "EmbeddedSentence(tokens=['我', '吃'])"


def test_what_the_interpreter_shows(folder: Path, tmp_path: Path) -> None:
    assert repr(ElmoEmbedder.load(folder, "cpu")) == f"<ElmoEmbedder of {folder}: 3 layers, dimension {2 * P}, cpu>"
    model = write_model(tmp_path / "model", TOKENS, words=WORDS, text=TextConfig(), with_softmax=True)
    assert repr(LineScorer.load(model, "cpu")) == f"<LineScorer of {model}: 3 layers, dimension {2 * P}, cpu>"
    word2vec = Word2Vec.load(add_word2vec(model))
    assert repr(word2vec) == f"<Word2Vec of {len(WORDS) + 3} tokens: dimension {word2vec.dimension}>"


def test_a_device_of_torch(folder: Path) -> None:
    ElmoEmbedder.load(folder, torch.device("cpu"))  # type: ignore[arg-type]
    for load in (ElmoEmbedder.load, LineScorer.load):
        for device in ("cuda:0", "gpu", None):
            expected = f"device {device}: expected auto, cpu or cuda."
            assert message_of(ElmoZhError, lambda load=load, device=device: load(folder, device)) == expected


@pytest.mark.parametrize(
    ("build", "reason"), [(None, "torch was built without CUDA"), ("12.9", "torch finds no CUDA device")]
)
def test_no_cuda(folder: Path, build: str | None, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line for Python too: it names no option of the command line."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", build)
    assert message_of(ElmoZhError, lambda: ElmoEmbedder.load(folder, "cuda")) == (
        f"device cuda: {reason}. Choose device cpu or auto, or install a CUDA build of torch and NVIDIA's driver."
    )


def test_no_model_at_all() -> None:
    expected = "takes the folder of a bundle or the name of an installed model, found"
    for load, name in (
        (Elmo.from_bundle, "Elmo.from_bundle"),
        (ElmoEmbedder.load, "ElmoEmbedder.load"),
        (LineScorer.load, "LineScorer.load"),
    ):
        advice = f"Call {name}('runs/latest/model')."
        assert refusal_of(TypeError, load) == f"{name} {expected} nothing. {advice}"
        assert refusal_of(TypeError, lambda load=load: load(7)) == f"{name} {expected} 7. {advice}"
    assert refusal_of(TypeError, ElmoEmbedder) == (
        "ElmoEmbedder takes a loaded bundle, found nothing. Call ElmoEmbedder.load('runs/latest/model')."
    )
    assert refusal_of(ValueError, Elmo) == (
        "Elmo takes options_file and weight_file, or module, found nothing."
        " Call Elmo.from_bundle('runs/latest/model') for a bundle, or Elmo('options.json', 'weights.hdf5', 1)."
    )
