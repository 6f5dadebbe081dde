"""Copying a bundle's weights into a model with other words: rows by word, everything else unchanged."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from drawn_bundles import draw_source
from messages import Heard, message_of

from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.bundle.write import write_bundle
from elmo_zh.config import ModelConfig, TextConfig
from elmo_zh.errors import BundleError, RunError
from elmo_zh.model.language_model import LanguageModel, build_modules, build_shape, weights_of
from elmo_zh.reader.bilm import CharacterShape
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.stages.settings import model_settings, require_same_text, take_model_settings, take_text_settings
from elmo_zh.text.segmenters import describe_segmenter
from elmo_zh.training.initial_weights import move_weights
from elmo_zh.vocabulary.lexicon import BYTES
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

OLD_WORDS = ("天", "气", "好", "苹果", "今天", "花")
OLD = Vocabulary((*SPECIALS, *OLD_WORDS))
# All words of OLD in another order, and new ones: with two known words, with one twice and an unknown character, with
# none.
NEW = Vocabulary((*SPECIALS, "花", "天气", "今天", "海鸥", "苹果", "好", "好好学", "气", "天", "鸥"))

TOKEN = ModelConfig(cell_dim=7, projection_dim=5, num_layers=2, tie_softmax=False)
TIED = replace(TOKEN, tie_softmax=True)
CHARACTER = replace(
    TOKEN, mode="character", character_slots=13, character_dim=3, character_filters=((1, 2), (2, 11)), highway_layers=1
)
MODES = {"token": TOKEN, "tied": TIED, "character": CHARACTER}


def drawn_model(config: ModelConfig, vocabulary: Vocabulary, seed: int) -> LanguageModel:
    model = LanguageModel.build(build_shape(config, len(vocabulary)), tie_softmax=config.tie_softmax)
    generator = torch.Generator().manual_seed(seed)
    for tensor in model.named_tensors().values():
        tensor.normal_(0.3, 0.7, generator=generator)
    return model


def write(
    folder: Path,
    model: LanguageModel,
    vocabulary: Vocabulary | None = OLD,
    *,
    softmax: bool = True,
    text: TextConfig | None = TextConfig(segmenter="character"),  # noqa: B008
) -> Bundle:
    source = draw_source(model.bilm.shape, words=None, text=text)
    source = replace(source, weights=weights_of(model.bilm, model.softmax if softmax else None), vocabulary=vocabulary)
    write_bundle(folder, source)
    return load_bundle(folder)


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bundle(mode: str, tmp_path: Path) -> Bundle:
    return write(tmp_path / "bundle", drawn_model(MODES[mode], OLD, seed=3))


def moved(bundle: Bundle, config: ModelConfig, vocabulary: Vocabulary = NEW, seed: int = 1) -> LanguageModel:
    model = LanguageModel.build(build_shape(config, len(vocabulary)), tie_softmax=config.tie_softmax)
    move_weights(model, bundle, vocabulary, seed)
    return model


def tables(model: LanguageModel | Bundle) -> dict[str, torch.Tensor]:
    bilm, softmax = build_modules(model.weights) if isinstance(model, Bundle) else (model.bilm, model.softmax)
    assert softmax is not None
    found = {"softmax": softmax.weight.detach(), "bias": softmax.bias.detach()}
    if bilm.shape.characters is None:
        found["tokens"] = bilm.token_table.weight.detach()
    return found


# Rows


def test_each_row_of_a_known_word_moves_with_its_word(mode: str, bundle: Bundle) -> None:
    new, old = tables(moved(bundle, MODES[mode])), tables(bundle)
    assert new.keys() == old.keys()
    for name, table in new.items():
        for word in (*SPECIALS, *OLD_WORDS):
            found, expected = table[NEW.tokens.index(word)], old[name][OLD.tokens.index(word)]
            assert torch.equal(found, expected), (name, word)


# Everything else


def test_all_but_rows_moves_as_it_is(mode: str, bundle: Bundle) -> None:
    expected = dict(bundle.bilm.named_parameters())
    found = dict(moved(bundle, MODES[mode]).bilm.named_parameters())
    assert found.keys() == expected.keys()
    compared = [name for name in found if name != "token_table.weight"]
    assert any(name.startswith("character_cnn") for name in compared) == (mode == "character")
    for name in compared:
        assert torch.equal(found[name], expected[name]), name


@pytest.mark.parametrize("mode", ["token", "character"], indirect=True)
def test_without_a_softmax_one_is_drawn_as_for_a_new_model(mode: str, tmp_path: Path) -> None:
    config = MODES[mode]
    bundle = write(tmp_path / "bundle", drawn_model(config, OLD, seed=3), softmax=False)
    model, fresh = moved(bundle, config, seed=7), LanguageModel.build(build_shape(config, len(NEW)), tie_softmax=False)
    fresh.initialise(7)
    assert torch.equal(model.softmax.weight, fresh.softmax.weight)
    assert not model.softmax.bias.any()
    assert "tie_softmax" not in model_settings(bundle)


def test_without_a_softmax_a_tied_one_is_the_token_table(tmp_path: Path) -> None:
    bundle = write(tmp_path / "bundle", drawn_model(TOKEN, OLD, seed=3), softmax=False)
    assert take_model_settings(TIED, bundle, (), SilentReporter()) == TIED
    model = moved(bundle, TIED)
    row = NEW.tokens.index("花")
    assert torch.equal(model.softmax.weight[row], bundle.bilm.token_table.weight[OLD.tokens.index("花")])


# Settings


def test_the_settings_of_a_bundle_build_its_shape(mode: str, bundle: Bundle) -> None:
    config = replace(ModelConfig(), **model_settings(bundle))
    assert build_shape(config, len(OLD)) == bundle.shape
    assert config.tie_softmax == (mode == "tied")
    assert take_model_settings(MODES[mode], bundle, (), SilentReporter()) == MODES[mode]


def test_a_model_of_manylangs_is_refused(tmp_path: Path) -> None:
    bundle = write(tmp_path / "bundle", drawn_model(CHARACTER, OLD, seed=3))
    shape = CharacterShape(
        num_characters=17, num_slots=13, embedding_dim=3, filters=((1, 2),), num_highways=1, activation="relu",
        word_dim=5, is_published=False,
    )  # fmt: skip
    weights = replace(bundle.weights, shape=replace(bundle.shape, characters=shape))
    message = message_of(BundleError, lambda: model_settings(replace(bundle, weights=weights, alphabet=BYTES)))
    assert message.startswith(f"{tmp_path / 'bundle'} is an ELMoForManyLangs model, ")


# Text


def prepared(**changes: object) -> dict[str, object]:
    """Return the settings that the segment stage records for text prepared like the bundle's."""
    return {
        "text.segmenter": "character",
        "text.unicode_form": "NFC",
        "text.split_sentences": True,
        "text.heldout_share": 0.01,
        "text.segmenter_version": {"name": "character", "version": "1"},
        **{f"text.{name}": value for name, value in changes.items()},
    }


def test_text_prepared_as_the_bundles(tmp_path: Path) -> None:
    bundle = write(tmp_path / "bundle", drawn_model(TOKEN, OLD, seed=3))
    listener = Heard()
    require_same_text(bundle, prepared(), listener)
    require_same_text(bundle, prepared(heldout_share=0.5), listener)
    require_same_text(bundle, {}, listener)
    assert listener.warnings == []
    unknown = write(tmp_path / "unknown", drawn_model(TOKEN, OLD, seed=3), text=None)
    assert unknown.info["segmenter"] is None
    require_same_text(unknown, prepared(), listener)
    (warning,) = listener.warnings
    assert warning.startswith(f"{unknown.path} does not say how its training text was segmented.")


def test_a_new_run_takes_the_text_settings_of_the_bundle(tmp_path: Path) -> None:
    text = TextConfig(segmenter="jieba", jieba_hmm=False, split_sentences=False)
    bundle = write(tmp_path / "bundle", drawn_model(TOKEN, OLD, seed=3), text=text)
    config, listener = TextConfig(), Heard()
    assert config.jieba_hmm
    taken = take_text_settings(config, bundle, {"text.split_sentences"}, listener)
    # What the user named stays, to be refused; all else that is no part of the bundle's stays too.
    assert taken == replace(config, jieba_hmm=False)
    assert listener.notes == [f"Settings taken from {bundle.path}: text.jieba_hmm true -> false."]


def test_the_script_is_compared_though_older_records_and_bundles_do_not_name_it(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain", drawn_model(TOKEN, OLD, seed=3))
    simplified = TextConfig(segmenter="character", script="simplified")
    bundle = write(tmp_path / "simplified", drawn_model(TOKEN, OLD, seed=3), text=simplified)
    assert ("script" in plain.info["text"], bundle.info["text"]["script"]) == (False, "simplified")
    assert (plain.text, bundle.text) == (TextConfig(segmenter="character"), simplified)
    assert bundle.build_preparation().prepare("臺灣").tokens == ["台", "湾"]
    settings = prepared(script="simplified", segmenter_version=describe_segmenter(simplified))
    message = message_of(RunError, lambda: require_same_text(plain, settings, SilentReporter()))
    assert "text.script simplified -> none" in message
    message = message_of(RunError, lambda: require_same_text(bundle, prepared(), SilentReporter()))
    assert "text.script none -> simplified" in message
