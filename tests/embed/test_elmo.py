"""`Elmo` and `batch_to_ids`: AllenNLP's modules in name and shape, with the vectors of `ElmoEmbedder`."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from drawn_bundles import CHARACTERS, SHAPES, TOKENS, P, oracle_layers, write_model
from messages import refusal_of
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh import Elmo, ElmoEmbedder, batch_to_ids
from elmo_zh.errors import OutputError

# 齉龘 and 桃 are outside the vocabulary; the last word is longer than 48 bytes.
SENTENCES = (["今天", "吃", "齉龘", "。"], [], ["苹果"], ["<S>", "吃", "我们", "桃", "，", "很" * 17])
MODES = list(SHAPES)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bundles")
    return {mode: write_model(folder / mode, shape, with_softmax=True) for mode, shape in SHAPES.items()}


@pytest.fixture(params=MODES)
def bundle(request: pytest.FixtureRequest, bundles: dict[str, Path]) -> Path:
    return bundles[request.param]


def layers_of(bundle: Path, sentences: Sequence[Sequence[str]] = SENTENCES) -> list[NDArray[np.float32]]:
    return ElmoEmbedder.load(bundle).embed_tokens(sentences)


def assert_close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    arrays = [array.detach().numpy() if isinstance(array, Tensor) else array for array in (found, expected)]
    np.testing.assert_allclose(*arrays, rtol=0, atol=tolerance)


def assert_mixes(elmo: Elmo, found: dict[str, Any], layers: Sequence[NDArray[np.float32]], places: int) -> None:
    """Each representation is the mix of these layers, in as many places, with zeros where there is no word."""
    assert len(found["elmo_representations"]) == len(elmo.scalar_mixes())
    mask = found["mask"]
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[place < vectors.shape[1] for place in range(places)] for vectors in layers]
    for mix, representation in zip(elmo.scalar_mixes(), found["elmo_representations"], strict=True):
        assert representation.shape == (len(layers), places, 2 * P)
        weights = np.exp([value.item() for value in mix.scalar_parameters])
        expected = np.zeros(representation.shape)
        for row, vectors in enumerate(layers):
            expected[row, : vectors.shape[1]] = np.tensordot(weights / weights.sum(), vectors, axes=1)
        assert_close(representation, expected * mix.gamma.item())
        assert not representation[~mask].any()


def draw_mixes(elmo: Elmo) -> Elmo:
    generator = torch.Generator().manual_seed(13)
    with torch.no_grad():
        for mix in elmo.scalar_mixes():
            for parameter in mix.parameters():
                parameter.normal_(generator=generator)
    return elmo


# Ids


def test_ids_of_a_chinese_word_and_of_the_marks() -> None:
    """One more than the published ones: three bytes a character, begin 259, end 260, padding 261."""
    ids = batch_to_ids([["<S>", "你好", "</S>"], ["a"]])
    assert (ids.dtype, ids.shape) == (torch.int64, (2, 3, 50))
    assert "你好".encode() == bytes([228, 189, 160, 229, 165, 189])
    assert ids[0, 0].tolist() == [259, 257, 260] + [261] * 47
    assert ids[0, 1].tolist() == [259, 229, 190, 161, 230, 166, 190, 260] + [261] * 42
    assert ids[0, 2].tolist() == [259, 258, 260] + [261] * 47
    assert ids[1, 0].tolist() == [259, 98, 260] + [261] * 47
    assert not ids[1, 1:].any()


def test_ids_of_a_bundle(bundles: dict[str, Path]) -> None:
    """A word of a text is never a mark, whatever its spelling; in token mode ids are one more than rows."""
    character, token = (Elmo.from_bundle(bundles[mode]) for mode in ("character", "token"))
    sentences = [["<S>", "吃"], ["我们"]]
    ids = character.batch_to_ids(sentences)
    assert ids.shape == (2, 2, 50)
    assert ids[0, 0].tolist() == [259, *(byte + 1 for byte in b"<S>"), 260] + [261] * 45
    assert torch.equal(ids[:, 1], batch_to_ids(sentences)[:, 1])
    assert token.batch_to_ids(sentences).tolist() == [[3, 6], [4, 0]]
    assert token.batch_to_ids([["桃", "。", "今天"]]).tolist() == [[3, 8, 5]]
    assert token.batch_to_ids([]).shape == (0, 0)


# Representations


@pytest.mark.parametrize("number", [1, 3])
def test_representations_are_mixes_of_the_layers(bundle: Path, number: int) -> None:
    elmo = draw_mixes(Elmo.from_bundle(bundle, number, dropout=0.0))
    found = elmo(elmo.batch_to_ids(SENTENCES))
    assert_mixes(elmo, found, layers_of(bundle), 6)
    assert elmo.get_output_dim() == 2 * P


def test_files_in_the_published_layout(bundles: dict[str, Path]) -> None:
    """As AllenNLP's constructor takes them; here words that are spelled like a mark are the mark."""
    bundle, sentences = bundles["character"], [SENTENCES[0], SENTENCES[2]]
    for kind in (Path, str):
        files = (kind(bundle / "options.json"), kind(bundle / "weights.hdf5"))
        elmo = draw_mixes(Elmo(*files, 2, dropout=0.0))
        assert torch.equal(elmo.batch_to_ids(sentences), batch_to_ids(sentences))
        assert_mixes(elmo, elmo(batch_to_ids(sentences)), layers_of(bundle, sentences), 4)
    marked = elmo(batch_to_ids([["<S>"]]))["elmo_representations"][0]
    assert np.abs(marked.detach().numpy() - elmo_of(bundle, [["<S>"]])).max() > 0.01


def elmo_of(bundle: Path, sentences: Sequence[Sequence[str]], **options: Any) -> NDArray[np.float32]:
    elmo = draw_mixes(Elmo.from_bundle(bundle, dropout=0.0, **options))
    representation: Tensor = elmo(elmo.batch_to_ids(sentences))["elmo_representations"][0]
    return representation.detach().numpy()


def test_sentence_boundaries_are_kept(bundle: Path) -> None:
    elmo = draw_mixes(Elmo.from_bundle(bundle, 2, dropout=0.0, keep_sentence_boundaries=True))
    found = elmo(elmo.batch_to_ids(SENTENCES))
    assert found["mask"].tolist() == [[True] * 6 + [False] * 2, [False] * 8, [True] * 3 + [False] * 5, [True] * 8]
    for mix, kept in zip(elmo.scalar_mixes(), found["elmo_representations"], strict=True):
        assert kept.shape == (4, 8, 2 * P)
        assert not kept[~found["mask"]].any()
        weights = np.exp([value.item() for value in mix.scalar_parameters])
        for row in (0, 2, 3):
            layers = oracle_layers(bundle, SENTENCES[row])
            expected = mix.gamma.item() * np.tensordot(weights / weights.sum(), layers, axes=1)
            assert_close(kept[row, : layers.shape[1]], expected)


def test_layer_normalisation(bundle: Path) -> None:
    """AllenNLP's: all numbers of all real tokens of a batch, the marks included."""
    sentences = [SENTENCES[0], SENTENCES[2]]
    elmo = Elmo.from_bundle(bundle, dropout=0.0, do_layer_norm=True, keep_sentence_boundaries=True)
    found = elmo(elmo.batch_to_ids(sentences))
    layers = np.concatenate([oracle_layers(bundle, words) for words in sentences], axis=1)
    expected = np.mean([(x - x.mean()) / x.std() for x in layers], axis=0)
    assert_close(found["elmo_representations"][0][found["mask"]], expected)
    assert not found["elmo_representations"][0][~found["mask"]].any()


def test_neither_batch_nor_padding_nor_a_call_before_matters(bundle: Path) -> None:
    """AllenNLP's carries a state from call to call; here the same sentence always has the same vectors."""
    elmo = draw_mixes(Elmo.from_bundle(bundle, dropout=0.0))
    ids = elmo.batch_to_ids(SENTENCES)
    first = elmo(ids)["elmo_representations"][0]
    assert torch.equal(elmo(ids)["elmo_representations"][0], first)
    for row, words in enumerate(SENTENCES):
        assert_close(elmo(elmo.batch_to_ids([words]))["elmo_representations"][0][0], first[row, : len(words)].detach())
    wider = torch.cat([ids, torch.zeros_like(ids)], dim=1)
    assert_close(elmo(wider)["elmo_representations"][0][:, :6], first.detach())


@pytest.mark.parametrize("mode", MODES)
def test_a_warm_state(mode: str, bundles: dict[str, Path], tmp_path: Path) -> None:
    warm = write_model(tmp_path / "warm", SHAPES[mode], warm=True)
    assert (warm / "warm_state.hdf5").exists()
    elmo = draw_mixes(Elmo.from_bundle(warm, dropout=0.0))
    ids = elmo.batch_to_ids(SENTENCES)
    assert_mixes(elmo, elmo(ids), layers_of(warm), 6)
    assert np.abs(elmo_of(warm, SENTENCES) - elmo_of(bundles[mode], SENTENCES)).max() > 0.01


# Cached words


@pytest.mark.parametrize("mode", MODES)
def test_cached_words(mode: str, bundles: dict[str, Path]) -> None:
    """Row 0 of the list is padding, whatever stands there."""
    bundle = bundles[mode]
    vocabulary = ["@@PADDING@@", "齉龘", "吃", "今天", "。", "苹果"]
    sentences = [SENTENCES[0], [], SENTENCES[2]]
    rows = torch.tensor([[3, 2, 1, 4], [0, 0, 0, 0], [5, 0, 0, 0]])
    elmo = draw_mixes(Elmo.from_bundle(bundle, 2, dropout=0.0, vocab_to_cache=vocabulary))
    ids = elmo.batch_to_ids(sentences)
    assert_mixes(elmo, elmo(ids, rows), layers_of(bundle, sentences), 4)
    # The rows alone count; without them the ids do.
    assert_mixes(elmo, elmo(torch.zeros_like(ids), rows), layers_of(bundle, sentences), 4)
    assert_mixes(elmo, elmo(ids), layers_of(bundle, sentences), 4)
    deeper = elmo(ids[:, None], rows[:, None])["elmo_representations"][0]
    assert torch.equal(deeper[:, 0], elmo(ids, rows)["elmo_representations"][0])
    without = draw_mixes(Elmo.from_bundle(bundle, 2, dropout=0.0))
    assert_mixes(without, without(ids, torch.ones_like(rows)), layers_of(bundle, sentences), 4)


# Training


def gradients(elmo: Elmo, ids: Tensor) -> dict[str, Tensor]:
    elmo.zero_grad()
    torch.stack(elmo(ids)["elmo_representations"]).square().sum().backward()
    return {name: parameter.grad for name, parameter in elmo.named_parameters() if parameter.grad is not None}


def test_only_the_mixes_are_trained_by_default(bundle: Path) -> None:
    elmo = draw_mixes(Elmo.from_bundle(bundle, 2, dropout=0.0))
    names = {
        f"scalar_mix_{mix}.{name}"
        for mix in range(2)
        for name in ("gamma", "scalar_parameters.0", "scalar_parameters.1", "scalar_parameters.2")
    }
    assert {name for name, parameter in elmo.named_parameters() if parameter.requires_grad} == names
    found = gradients(elmo, elmo.batch_to_ids(SENTENCES))
    assert set(found) == names
    assert all(gradient.abs().sum() > 0 for gradient in found.values())


def test_the_bilm_is_trained_if_asked_for(bundle: Path) -> None:
    elmo = draw_mixes(Elmo.from_bundle(bundle, requires_grad=True, dropout=0.0))
    found = gradients(elmo, elmo.batch_to_ids(SENTENCES))
    assert set(found) == {name for name, _ in elmo.named_parameters()}
    assert not any(gradient.is_sparse for gradient in found.values())
    assert all(gradient.abs().sum() > 0 for gradient in found.values())
    # Any optimiser takes a step that lowers the sum.
    ids = elmo.batch_to_ids(SENTENCES)
    before = elmo(ids)["elmo_representations"][0].square().sum().item()
    torch.optim.SGD(elmo.parameters(), lr=1e-4).step()
    assert elmo(ids)["elmo_representations"][0].square().sum().item() < before


@pytest.mark.parametrize("mode", MODES)
def test_a_tuned_module_with_cached_words_is_the_same_after_saving(
    mode: str, bundles: dict[str, Path], tmp_path: Path
) -> None:
    """Cached vectors are not trained: the saved biLM could not hold them."""
    words = ["", "吃", "我们"]
    elmo = Elmo.from_bundle(bundles[mode], requires_grad=True, vocab_to_cache=words, dropout=0.0)
    ids, rows = elmo.batch_to_ids([["吃", "我们", "吃"]]), torch.tensor([[1, 2, 1]])
    optimizer = torch.optim.SGD(elmo.parameters(), lr=0.1)
    before = elmo(ids, rows)["elmo_representations"][0]
    before.square().sum().backward()
    optimizer.step()
    tuned = elmo.eval()(ids, rows)["elmo_representations"][0]
    assert not torch.allclose(tuned, before, atol=1e-3)
    elmo.save(tmp_path / "tuned")
    again = Elmo.from_bundle(tmp_path / "tuned", vocab_to_cache=words, dropout=0.0).eval()
    mixes = {name: value for name, value in elmo.state_dict().items() if "scalar_mix" in name}
    again.load_state_dict(mixes, strict=False)
    torch.testing.assert_close(again(ids, rows)["elmo_representations"][0], tuned, rtol=0, atol=1e-6)


def smooth_elmo(mode: str, folder: Path, *, warm: bool = False) -> Elmo:
    """Return a tiny one in float64, without a clip within reach; highway layers keep their relu."""
    characters = replace(CHARACTERS, embedding_dim=2, filters=((1, 1), (2, 2)), activation="tanh")
    shape = replace(TOKENS, cell_dim=3, projection_dim=2, cell_clip=50.0, projection_clip=50.0)
    shape = replace(shape, characters=characters if mode == "character" else None)
    write_model(folder / "tiny", shape, warm=warm, seed=41)
    elmo = Elmo.from_bundle(folder / "tiny", requires_grad=True, dropout=0.0)
    return draw_mixes(elmo).double()


@pytest.mark.parametrize(("mode", "warm"), [("token", False), ("token", True), ("character", False)])
def test_gradients_against_differences(mode: str, warm: bool, tmp_path: Path) -> None:
    elmo = smooth_elmo(mode, tmp_path, warm=warm)
    ids = elmo.batch_to_ids([["吃", "我", "吃"], ["今天"]])
    names, parameters = zip(*elmo.named_parameters(), strict=True)

    def representation(*values: Tensor) -> Tensor:
        found = torch.func.functional_call(elmo, dict(zip(names, values, strict=True)), (ids,))
        first: Tensor = found["elmo_representations"][0]
        return first

    # In random directions of all numbers together; and each parameter has its part in it.
    assert torch.autograd.gradcheck(representation, parameters, fast_mode=True)
    assert all(gradient.abs().sum() > 0 for gradient in gradients(elmo, ids).values())


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # torch hides it, but not from an error filter
@pytest.mark.parametrize("mode", MODES)
def test_compiled(mode: str, bundles: dict[str, Path]) -> None:
    elmo = draw_mixes(Elmo.from_bundle(bundles[mode], 2, dropout=0.0, requires_grad=True))
    ids = elmo.batch_to_ids(SENTENCES)
    expected, exact = elmo(ids), gradients(elmo, ids)
    torch._dynamo.reset()
    compiled: Any = torch.compile(elmo, backend="aot_eager")
    found = compiled(ids)
    assert torch.equal(found["mask"], expected["mask"])
    for ours, theirs in zip(found["elmo_representations"], expected["elmo_representations"], strict=True):
        assert_close(ours, theirs.detach().numpy())
    elmo.zero_grad()
    torch.stack(found["elmo_representations"]).square().sum().backward()
    for name, parameter in elmo.named_parameters():
        assert parameter.grad is not None
        assert_close(parameter.grad, exact[name].numpy(), 1e-4)


# Another biLM, and wrong arguments


def test_a_token_model_without_its_words_cannot_spell(bundles: dict[str, Path]) -> None:
    """Its rows come from elsewhere, or from the bundle."""
    bundle = bundles["token"]
    elmo = draw_mixes(Elmo(bundle / "options.json", bundle / "weights.hdf5", 1, dropout=0.0))
    with pytest.raises(ValueError, match="was loaded without its vocabulary; load its bundle with from_bundle"):
        elmo.batch_to_ids(SENTENCES)
    ids = Elmo.from_bundle(bundle).batch_to_ids(SENTENCES)
    assert_mixes(elmo, elmo(ids), layers_of(bundle), 6)


def test_a_fine_tuned_model_is_saved_as_a_bundle(bundle: Path, tmp_path: Path) -> None:
    elmo = Elmo.from_bundle(bundle, requires_grad=True, dropout=0.0)
    optimizer = torch.optim.SGD(elmo.parameters(), lr=0.5)
    ids = elmo.batch_to_ids(SENTENCES)
    elmo(ids)["elmo_representations"][0].square().sum().backward()
    optimizer.step()
    elmo.save(tmp_path / "tuned")
    saved = ElmoEmbedder.load(tmp_path / "tuned")
    for found, before, sentence in zip(saved.embed_tokens(SENTENCES), layers_of(bundle), SENTENCES, strict=True):
        again = Elmo.from_bundle(tmp_path / "tuned", scalar_mix_parameters=[-1e9, 0, -1e9], dropout=0.0)
        assert not any(parameter.requires_grad for parameter in again.parameters())
        own = elmo._elmo_lstm(elmo.batch_to_ids([sentence]), None)["activations"][1][0, 1:-1]
        assert_close(own, found[1])
        assert_close(again(again.batch_to_ids([sentence]))["elmo_representations"][0][0], found[1])
        assert not sentence or np.abs(found - before).max() > 1e-4
    info = json.loads((tmp_path / "tuned" / "bundle.json").read_text(encoding="utf-8"))
    assert info["origin"]["started_from"]["digest"] == ElmoEmbedder.load(bundle).bundle.digest
    told = refusal_of(OutputError, lambda: elmo.save(tmp_path / "tuned"))
    assert "already exists" in told
    elmo.save(tmp_path / "tuned", force=True)
    published = Elmo(bundle / "options.json", bundle / "weights.hdf5", 1)
    assert "load it with from_bundle" in refusal_of(ValueError, lambda: published.save(tmp_path / "other"))
