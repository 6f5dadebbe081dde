"""Every way to vectors reads words outside the vocabulary by the known words in them, unless told otherwise."""

from pathlib import Path

import numpy as np

from elmo_zh import Elmo, ElmoEmbedder
from elmo_zh.embed.text_tokens import known_parts
from elmo_zh.sklearn import ElmoVectorizer

WORDS = ("我们", "说", "今天", "天气", "很", "好")


def test_python_calls_agree(by_character: Path) -> None:
    model = by_character
    sentence, unknown = ["今天", "很好", "说"], [["今天", "很好", "说"]]
    [expected] = ElmoEmbedder.load(model, "cpu", unknown="backoff").embed_tokens(unknown)
    embedder = ElmoEmbedder.load(model, "cpu")
    np.testing.assert_array_equal(embedder.embed_tokens(unknown)[0], expected)
    [as_unknown] = ElmoEmbedder.load(model, "cpu", unknown="unk").embed_tokens(unknown)
    assert np.abs(as_unknown - expected).max() > 1e-3
    vectorizer = ElmoVectorizer(str(model), layers=0, segmented=True, device="cpu").fit([" ".join(sentence)])
    np.testing.assert_allclose(vectorizer.transform([" ".join(sentence)])[0], expected[0].mean(axis=0), atol=1e-6)
    # A word given twice has two equal rows.
    elmo = Elmo.from_bundle(model, vocab_to_cache=["", "很好", "说", "很好"])
    cached = elmo._elmo_lstm.cached_words.detach().numpy()[3:]
    half = expected.shape[-1] // 2
    np.testing.assert_array_equal(cached, expected[0][[1, 2, 1], :half])


def test_known_parts(by_character: Path) -> None:
    embedder = ElmoEmbedder.load(by_character, "cpu")
    assert [known_parts(embedder, word) for word in ("很好", "好桃", "桃", "今天")] == [["很", "好"], ["好"], [], []]
    assert known_parts(ElmoEmbedder.load(by_character, "cpu", unknown="unk"), "很好") == []
