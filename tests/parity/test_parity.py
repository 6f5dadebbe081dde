"""Vectors and perplexities of a bundle against the NumPy oracle, which shares no code with the model."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from drawn_bundles import write_model
from parity import numpy_oracle as oracle

from elmo_zh.bundle.read import load_bundle
from elmo_zh.config import TextConfig
from elmo_zh.contexts.line_scorer import LineScorer
from elmo_zh.contexts.score_texts import evaluate_texts
from elmo_zh.corpus.input_texts import InputText, input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.embed.dump import DumpSettings, dump_vectors
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.jobs import Job
from elmo_zh.model.bilm import BiLMShape
from elmo_zh.model.character_cnn import CharacterShape
from elmo_zh.run.reporter import SilentReporter
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
# P, D, L, cell clip, projection clip, skip connections; distinct primes, clips that are reached.
SHAPES = {
    "skip": (5, 13, 3, 0.5, 0.3, True),
    "no skip": (5, 13, 2, 0.5, 0.3, False),
    "no clip": (7, 11, 2, 0.0, 0.0, True),
    "one layer": (5, 7, 1, 3.0, 3.0, True),
    "no projection": (7, 7, 2, 0.4, 0.3, True),
    "characters": (5, 13, 2, 0.5, 0.3, True),
    "characters, tanh, no highway": (5, 13, 2, 0.5, 0.3, False),
    "characters, no CNN_proj": (12, 13, 1, 0.5, 0.3, True),
}
# Slots that cut 今天天气 in the middle of its last character.
CHARACTERS = {
    name: CharacterShape(
        num_characters=261,
        num_slots=13,
        embedding_dim=2,
        filters=((1, 2), (2, 3), (5, 7)),
        num_highways=0 if "no highway" in name else 2,
        activation="tanh" if "tanh" in name else "relu",
    )
    for name in SHAPES
    if name.startswith("characters")
}


@pytest.fixture(params=list(SHAPES))
def bundle_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A bundle with random weights, large enough to reach the clips."""
    projection, cell, layers, cell_clip, projection_clip, skip = SHAPES[request.param]
    shape = BiLMShape(
        num_tokens=0,
        cell_dim=cell,
        projection_dim=projection,
        num_layers=layers,
        cell_clip=cell_clip,
        projection_clip=projection_clip,
        skip_connections=skip,
        characters=CHARACTERS.get(request.param),
    )
    spelling, text = SpellingModel.build({"确": 3, "不买": 2}), TextConfig(segmenter="whitespace")
    return write_model(tmp_path / "model", shape, seed=11, words=WORDS, with_softmax=True, spelling=spelling, text=text)


@pytest.fixture
def text_path(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def as_text(path: Path) -> InputText:
    [source] = find_sources([str(path)]).sources
    return input_text(source, TextConfig(), segmented=True)


def test_dumped_vectors_equal_the_oracle(bundle_path: Path, text_path: Path, tmp_path: Path) -> None:
    embedder = ElmoEmbedder.load(bundle_path)
    settings = DumpSettings(segmented=True, layers="all", dtype="float32")
    job = Job(as_text(text_path), tmp_path / "out.hdf5")
    dump_vectors(embedder, job, settings, force=False, reporter=SilentReporter())
    reference = oracle.load_bundle(bundle_path)
    with h5py.File(tmp_path / "out.hdf5") as file:
        for number, line in enumerate(LINES):
            expected = oracle.layer_activations(reference, line.split())
            assert file[str(number)].shape == expected.shape
            np.testing.assert_allclose(file[str(number)][()], expected, rtol=0, atol=1e-5)
            assert [token.decode() for token in file[f"tokens/{number}"][()]] == line.split()


def test_perplexity_equals_the_oracle(bundle_path: Path, text_path: Path) -> None:
    scorer = LineScorer.load(bundle_path, "cpu", segmented=True)
    figures = evaluate_texts(scorer, [as_text(text_path)], reporter=SilentReporter()).figures()
    expected = oracle.evaluate(oracle.load_bundle(bundle_path), [line.split() for line in LINES if line])
    assert figures.num_predictions == expected["num_predictions"]
    assert figures.oov_rate == pytest.approx(expected["oov_rate"])
    for name in ("perplexity", "forward_perplexity", "backward_perplexity", "bits_per_character"):
        assert getattr(figures, name) == pytest.approx(expected[name], rel=1e-4)


def test_golden_vectors_in_the_bundle_equal_the_oracle(bundle_path: Path) -> None:
    reference = oracle.load_bundle(bundle_path)
    with h5py.File(bundle_path / "golden.hdf5") as file:
        assert len(file["tokens"]) == 3
        for name, tokens in file["tokens"].items():
            words = [token.decode() for token in tokens[()]]
            np.testing.assert_allclose(file[name][()], oracle.layer_activations(reference, words), rtol=0, atol=1e-5)


def test_clips_are_reached(bundle_path: Path) -> None:
    """Otherwise the comparisons above would not notice a missing clip."""
    shape = load_bundle(bundle_path).bilm.shape
    if not shape.projection_clip or shape.projection_clip == 3.0 or shape.projection_dim == shape.cell_dim:
        pytest.skip("this shape has no projection clip within reach")
    vectors = ElmoEmbedder.load(bundle_path).embed_tokens([line.split() for line in LINES])
    assert any((np.abs(sentence[1]) == np.float32(shape.projection_clip)).any() for sentence in vectors)
