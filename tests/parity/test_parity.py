"""Vectors and perplexities of a bundle against the NumPy oracle, which shares no code with the model."""

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from contract.command_line import elmo_zh
from contract.dumps import assert_all_close, read_dump, write_lines
from drawn_bundles import CHARACTERS, TOKENS, write_model
from parity import numpy_oracle as oracle

from elmo_zh.bundle.read import load_bundle
from elmo_zh.config import TextConfig
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.vocabulary.spelling import SpellingModel

WORDS = ("我们", "今天", "吃", "苹果", "，", "手机", "贵", "。", "的")
LINES = (
    "我们 今天 吃 苹果 。",
    "",
    "苹果 手机 的 确 贵 ， 我们 今天 不 买 。",
    "<S> 贵 </S> <UNK>",
    "吃",
    "今天 今天 今天 今天 今天 今天 今天 今天 今天 今天 今天 今天 今天 今天 今天 今天 今天 贵 。",
)
# Slots that cut 今天天气 in the middle of its last character; distinct primes, clips that are reached.
CNN = replace(CHARACTERS, num_slots=13, embedding_dim=2, filters=((1, 2), (2, 3), (5, 7)), num_highways=2)
PLAIN_CNN = replace(CNN, num_highways=0, activation="tanh")
SHAPES = {
    "skip": replace(TOKENS, num_layers=3),
    "no skip": replace(TOKENS, skip_connections=False),
    "no clip": replace(TOKENS, projection_dim=7, cell_dim=11, cell_clip=0.0, projection_clip=0.0),
    "one layer": replace(TOKENS, cell_dim=7, num_layers=1, cell_clip=3.0, projection_clip=3.0),
    "no projection": replace(TOKENS, projection_dim=7, cell_dim=7, cell_clip=0.4),
    "characters": replace(TOKENS, characters=CNN),
    "characters, tanh, no highway": replace(TOKENS, skip_connections=False, characters=PLAIN_CNN),
    "characters, no CNN_proj": replace(TOKENS, projection_dim=12, num_layers=1, characters=CNN),
}


@pytest.fixture(params=list(SHAPES))
def bundle_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A bundle with random weights, large enough to reach the clips."""
    shape = SHAPES[request.param]
    spelling, text = SpellingModel.build({"确": 3, "不买": 2}), TextConfig(segmenter="whitespace")
    return write_model(tmp_path / "model", shape, seed=11, words=WORDS, with_softmax=True, spelling=spelling, text=text)


@pytest.fixture
def text_path(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "text.txt", LINES)


def test_dumped_vectors_equal_the_oracle(bundle_path: Path, text_path: Path, tmp_path: Path) -> None:
    output, words = ("--output", tmp_path / "out.hdf5"), [line.split() for line in LINES]
    typed = ("embed", text_path, "--segmented", "--unknown", "unk", "--model", bundle_path, *output)
    assert elmo_zh(*typed).status == 0
    vectors, tokens, _ = read_dump(tmp_path / "out.hdf5")
    reference = oracle.load_bundle(bundle_path)
    assert tokens == words
    assert_all_close(vectors, [oracle.layer_activations(reference, line) for line in words], 1e-5)


def test_perplexity_equals_the_oracle(bundle_path: Path, text_path: Path) -> None:
    found = elmo_zh("evaluate", text_path, "--segmented", "--model", bundle_path, "--json").result()
    expected = oracle.evaluate(oracle.load_bundle(bundle_path), [line.split() for line in LINES if line])
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-4)


def test_golden_vectors_in_the_bundle_equal_the_oracle(bundle_path: Path) -> None:
    reference = oracle.load_bundle(bundle_path)
    with h5py.File(bundle_path / "golden.hdf5") as file:
        assert len(file["tokens"]) == 3
        for name, tokens in file["tokens"].items():
            words = [token.decode() for token in tokens[()]]
            np.testing.assert_allclose(file[name][()], oracle.layer_activations(reference, words), rtol=0, atol=1e-5)


def test_clips_are_reached(bundle_path: Path) -> None:
    """Otherwise the comparisons above would not notice a missing clip."""
    shape = load_bundle(bundle_path).shape
    if not shape.projection_clip or shape.projection_clip == 3.0 or shape.projection_dim == shape.cell_dim:
        pytest.skip("this shape has no projection clip within reach")
    vectors = ElmoEmbedder.load(bundle_path).embed_tokens([line.split() for line in LINES])
    assert any((np.abs(sentence[1]) == np.float32(shape.projection_clip)).any() for sentence in vectors)
