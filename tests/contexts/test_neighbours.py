"""The occurrences most similar to a word in a sentence, beside plain products of matrices."""

import json
from pathlib import Path

import numpy as np
import pytest
from contexts.texts import LINES, model_of_words, write_text
from contract.command_line import elmo_zh, succeed
from drawn_bundles import SHAPES, write_model

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.config import TextConfig
from elmo_zh.contexts import nearest as nearest_module
from elmo_zh.contexts.nearest import nearest_among, nearest_rows, widened
from elmo_zh.contexts.occurrences import (
    TokenInSentence,
    best_occurrence,
    require_occurrences,
)
from elmo_zh.errors import ElmoZhError


def drawn(num_rows: int, dimension: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(7)
    # All in about one direction, as vectors of language models are, so that many cosines are almost equal.
    vectors = (scale * (1 + 0.3 * generator.standard_normal((num_rows, dimension)))).astype(np.float16)
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1).astype(np.float32)
    return vectors, norms, (1 + 0.3 * generator.standard_normal(dimension)).astype(np.float32)


def plain_cosines(vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
    wide, wide_query = vectors.astype(np.float64), query.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1) * np.linalg.norm(wide_query)
    return np.divide(wide @ wide_query, norms, out=np.zeros(len(wide)), where=norms > 0)


def test_every_finite_half_is_widened_exactly() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    vectors = every[np.isfinite(every)].reshape(128, 496)
    np.testing.assert_array_equal(widened(vectors), vectors.astype(np.float32))


@pytest.mark.parametrize("scale", [1.0, 1e-4, 5e3])
def test_the_nearest_are_those_of_a_plain_product(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_module, "_BLOCK", 97)
    vectors, norms, query = drawn(1009, 31, scale)
    vectors[2], norms[2] = 0, 0
    expected = plain_cosines(vectors, query)
    for top in (0, 1, 13, 1009, 5000):
        numbers, cosines = nearest_rows(vectors, norms, query, top)
        order = np.argsort(-expected, kind="stable")[:top]
        np.testing.assert_array_equal(numbers, order)
        np.testing.assert_allclose(cosines, expected[order], rtol=0, atol=1e-12)
    some = np.arange(3, 1009, 7)
    numbers, cosines = nearest_among(some, vectors, query, 5)
    np.testing.assert_array_equal(numbers, some[np.argsort(-expected[some])][:5])


def test_neighbours_in_an_index(index: ContextIndex, embedder: ElmoEmbedder) -> None:
    tokens = LINES[0].split()
    [activations] = embedder.embed_tokens([tokens])
    for layer in index.layers:
        query = activations[layer, 3]
        expected = plain_cosines(np.array(index.vectors(layer)), query)
        found = index.neighbours(query, layer, top=6)
        order = np.argsort(-expected, kind="stable")[:6]
        assert [each.occurrence.number for each in found] == order.tolist()
        np.testing.assert_allclose([each.cosine for each in found], expected[order], rtol=0, atol=1e-12)
        same = index.neighbours(query, layer, word="苹果")
        assert {each.occurrence.word for each in same} == {"苹果"}
        assert len(same) == len(index.occurrences("苹果")) == 5
    assert index.neighbours(activations[2, 3], 2, top=2)[0].cosine == pytest.approx(1.0, abs=1e-6)


def test_a_word_that_the_segmenter_does_not_cut(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", SHAPES["token"], text=TextConfig())
    embedder = ElmoEmbedder.load(model)
    natural = found(embedder, "苹果", "我们 吃 苹果")
    assert (natural.tokens, natural.position, natural.describe_cut()) == (["我们", "吃", "苹果"], 2, "")
    cut = found(embedder, "们今", "我们今天吃１０个苹果")
    assert (cut.tokens, cut.position) == (["我", "们今", "天吃", "10", "个", "苹果"], 1)
    assert cut.describe_cut().endswith("so the sentence was segmented again as 我 们今 天吃 10 个 苹果.")
    assert found(embedder, "１０", "我们今天吃１０个苹果").word == "10"
    # A word is normalised as the text is, so that its other width is found too.
    for word, sentence in (("10", "我们今天吃１０个苹果"), ("１０", "我们今天吃10个苹果")):
        occurrence = found(embedder, word, sentence)
        assert (occurrence.word, occurrence.start, occurrence.end) == ("10", 5, 7)
    # Where the segmenter makes it a token it is taken, though it stands inside another word before.
    assert found(embedder, "天", "我们今天 天").tokens == ["我们", "今天", "天"]
    # Normalisation leaves nothing of the last two.
    for word, sentence in (
        ("香蕉", "我们吃苹果"),
        (" ", "我们 吃苹果"),
        ("\u200b", "我们吃\u200b苹果"),
        ("\a", "我们\a吃苹果"),
    ):
        with pytest.raises(ElmoZhError, match=rf"{word} is not a word of the sentence"):
            found(embedder, word, sentence)
    with pytest.raises(ElmoZhError, match=r"苹 is not a word of the sentence.*: 吃 苹果"):
        found(embedder, "苹", "吃 苹果", segmented=True)


def found(embedder: ElmoEmbedder, word: str, sentence: str, *, segmented: bool = False) -> TokenInSentence:
    return best_occurrence(require_occurrences(embedder, sentence, word, segmented=segmented))


def test_the_commands(model: Path, tmp_path: Path) -> None:
    text = write_text(tmp_path / "a.txt", LINES)
    made = succeed("index", text, "--model", model, "--output", "new.index", "--min-count", "1")
    shown = dict(line.split(":", 1) for line in made.stdout.splitlines())
    assert [int(shown[name]) for name in ("occurrences", "words", "kept_lines")] == [24, 11, 5]
    assert made.stdout.splitlines()[-1].endswith("neighbours WORD --in SENTENCE --index new.index")
    arguments = ("neighbours", "苹果", "--in", LINES[0], "--index", "new.index")
    found = elmo_zh(*arguments, "--top", "3", "--json").result()
    assert (found["word"], found["layer"], len(found["neighbours"])) == ("苹果", 2, 3)
    assert found["neighbours"][0]["text"] == LINES[0]
    assert found["neighbours"][0]["line"] == 0
    *rows, _, following = elmo_zh(*arguments, "--same-word").stdout.splitlines()
    assert len(rows) == 4
    assert rows[0].startswith("1.0000  ")
    assert rows[0].endswith("a.txt:1")
    assert following.endswith("elmo-zh senses 苹果 --index new.index")
    unknown = ("neighbours", "香蕉", "--in", "香蕉", "--index", "new.index")
    assert "香蕉 is not in new.index" in elmo_zh(*unknown, "--same-word").only_error()
    assert "香蕉 is outside the model's vocabulary" in elmo_zh(*unknown).stderr


def test_a_path_in_the_index_is_used_only_for_the_model_that_made_it(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = write_text(tmp_path / "a.txt", LINES)
    assert elmo_zh("index", text, "--model", model, "--output", "a.index", "--min-count", "1").status == 0
    arguments = ("neighbours", "苹果", "--in", "我 吃 苹果", "--index", "a.index")
    other = model_of_words(tmp_path / "other", seed=5)
    default = model_of_words(tmp_path / "default", seed=7)
    monkeypatch.setenv("ELMO_ZH_MODEL", str(default))
    info = Path("a.index", "index.json")
    whole = info.read_text(encoding="utf-8")
    assert elmo_zh(*arguments).status == 0
    info.write_text(whole.replace(json.dumps(str(model)), json.dumps(str(other))), encoding="utf-8")
    Path("a.index", "elmo-zh.json").unlink()
    assert f"but {default} is a different model" in elmo_zh(*arguments).only_error()
    (other / "bundle.json").write_bytes(b"[" * 200_000)
    assert f"but {default} is a different model" in elmo_zh(*arguments).only_error()
    assert elmo_zh(*arguments, "--model", model).status == 0


def test_of_equal_vectors_the_first_comes_first() -> None:
    vectors, norms, query = drawn(29, 31)
    repeated = np.tile(vectors, (300, 1))
    numbers, cosines = nearest_rows(repeated, np.tile(norms, 300), query, 700)
    best = int(np.argmax(plain_cosines(vectors, query)))
    assert numbers[:300].tolist() == [best + 29 * number for number in range(300)]
    assert len(set(cosines[:300].tolist())) == 1
