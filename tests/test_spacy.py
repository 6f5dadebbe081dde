"""The spaCy component against the embedder's vectors, for any tokens, saved and loaded."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_bundles import SHAPES, TOKENS, P, write_model
from messages import message_of
from numpy.typing import NDArray

pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'spacy>=3.8'")

import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from elmo_zh import ElmoEmbedder, split_sentences
from elmo_zh.config import TextConfig
from elmo_zh.errors import BundleError
from elmo_zh.spacy import ElmoComponent

WORDS = ("我们", "今天", "吃", "苹果", "。", "很", "甜")
TEXTS = ["我们今天吃苹果。苹果很甜。", "", "　 ", "今天 吃\n苹果", "甜" * 7]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the models are: model, of words and sentences, and other, of characters and whole lines."""
    folder = tmp_path_factory.mktemp("models")
    write_model(folder / "model", TOKENS, words=WORDS, text=TextConfig(segmenter="jieba"))
    text = TextConfig(segmenter="character", split_sentences=False)
    write_model(folder / "other", SHAPES["character"], words=WORDS, text=text, seed=5)
    return folder


@pytest.fixture(scope="module")
def embedder(folder: Path) -> ElmoEmbedder:
    return ElmoEmbedder.load(folder / "model", "cpu")


def pipeline(model: Path, **config: Any) -> Any:
    nlp = spacy.blank("zh")
    nlp.add_pipe("elmo_zh", config={"model": str(model), "device": "cpu", **config})
    return nlp


def expected_layers(embedder: ElmoEmbedder, sentences: list[str], spans: list[tuple[int, int]]) -> NDArray[np.float64]:
    """All layers of each span of characters, token by token and character by character, shape (L + 1, n, 2P)."""
    tokens: list[tuple[set[int], NDArray[np.float32]]] = []
    start = 0
    for sentence in sentences:
        line = embedder.prepare(sentence)
        [vectors] = embedder.embed_tokens([line.tokens])
        for number, (first, end) in enumerate(line.offsets.tolist()):
            tokens.append((set(range(start + first, start + end)), vectors[:, number]))
        start += len(sentence)
    found = np.zeros((3, len(spans), 2 * P))
    for place, (first, end) in enumerate(spans):
        inside = [vector for characters, vector in tokens if characters & set(range(first, end))]
        if inside:
            found[:, place] = np.mean(inside, axis=0)
    return found


def test_each_character_has_the_vector_of_its_word(folder: Path, embedder: ElmoEmbedder) -> None:
    doc = pipeline(folder / "model")(TEXTS[0])
    sentences = ["我们今天吃苹果。", "苹果很甜。"]
    expected = expected_layers(embedder, sentences, [(place, place + 1) for place in range(len(TEXTS[0]))])
    np.testing.assert_allclose(doc._.elmo_layers, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(doc.tensor, expected.mean(axis=0), rtol=0, atol=1e-6)
    assert (doc.tensor.dtype, doc.tensor.shape) == (np.dtype("float32"), (len(doc), 2 * P))
    assert [token.text for token in doc] == list(TEXTS[0])
    np.testing.assert_array_equal(doc[0].vector, doc[1].vector)
    # 苹果 in the second sentence has other neighbours.
    assert np.abs(doc[5].vector - doc[8].vector).max() > 1e-3
    np.testing.assert_allclose(doc.vector, doc.tensor.mean(axis=0), rtol=0, atol=1e-6)
    np.testing.assert_allclose(doc[2:4].vector, doc.tensor[2:4].mean(axis=0), rtol=0, atol=1e-6)
    with pytest.warns(UserWarning, match="W007"):  # about spaCy's own vectors; there are none
        assert doc[5].similarity(doc[6]) == pytest.approx(1, abs=1e-5)


@pytest.mark.filterwarnings("ignore::elmo_zh.UnknownWordsWarning")
@settings(max_examples=30)
@given(pieces=st.lists(st.sampled_from([*WORDS, " ", "\n", "A", "我", "们今"]), max_size=12), random=st.randoms())
def test_tokens_of_any_tokenizer(embedder: ElmoEmbedder, pieces: list[str], random: Any) -> None:
    text = "".join(pieces)
    borders = sorted({0, len(text), *(random.randrange(len(text) + 1) for _ in pieces)})
    spans = list(pairwise(borders))
    doc = Doc(spacy.blank("zh").vocab, [text[start:end] for start, end in spans], [False] * len(spans))
    assert doc.text == text
    ElmoComponent(embedder, "top")(doc)
    expected = expected_layers(embedder, split_sentences(text), spans)
    np.testing.assert_allclose(doc._.elmo_layers, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(doc.tensor, expected[-1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("model", ["model", "other"])
@pytest.mark.parametrize("batch_size", [1, 2])
def test_a_stream_of_documents(folder: Path, model: str, batch_size: int) -> None:
    nlp = pipeline(folder / model)
    together = list(nlp.pipe(TEXTS, batch_size=batch_size))
    assert [doc.text for doc in together] == TEXTS
    for text, doc in zip(TEXTS, together, strict=True):
        alone = nlp(text)
        assert doc.tensor.shape == (len(doc), 2 * P)
        assert doc._.elmo_layers.shape == (3, len(doc), 2 * P)
        np.testing.assert_allclose(doc._.elmo_layers, alone._.elmo_layers, rtol=0, atol=1e-6)
    assert not together[2].tensor.any()
    assert not together[1].vector.any()


def test_layers_of_other_tokens_are_refused(folder: Path) -> None:
    """spaCy merges the rows of `tensor` with the tokens, but knows nothing of the layers."""
    nlp = pipeline(folder / "model")
    doc = nlp(TEXTS[0])
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    with pytest.raises(ValueError, match="tokens, the document has"):
        _ = doc._.elmo_layers
    assert nlp.get_pipe("elmo_zh")(doc)._.elmo_layers.shape[1] == len(doc)


def test_a_saved_pipeline(folder: Path, tmp_path: Path) -> None:
    nlp = pipeline(folder / "model", layer="top")
    nlp.to_disk(tmp_path / "nlp")
    expected = nlp("今天吃苹果").tensor
    np.testing.assert_array_equal(spacy.load(tmp_path / "nlp")("今天吃苹果").tensor, expected)
    np.testing.assert_array_equal(
        pipeline(folder / "model", layer="top").from_bytes(nlp.to_bytes())("今天吃苹果").tensor, expected
    )

    def load_with(model: str) -> object:
        return spacy.load(tmp_path / "nlp", config={"components": {"elmo_zh": {"model": str(folder / model)}}})

    assert load_with("model")
    for load in (lambda: load_with("other"), lambda: pipeline(folder / "other").from_bytes(nlp.to_bytes())):
        assert "is not the model" in message_of(BundleError, load)
    for damage in (lambda path: path.write_text("{"), lambda path: path.unlink()):
        damage(tmp_path / "nlp" / "elmo_zh")
        assert "is not the model" in message_of(BundleError, lambda: load_with("model"))
