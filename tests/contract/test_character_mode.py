"""The whole pipeline in character mode, typed as users do, against the NumPy oracle."""

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from contract.command_line import (
    CELL,
    LAYERS,
    PROJECTION,
    STEP_TOKENS,
    SampleRun,
    contents_alone,
    elmo_zh,
    metrics_lines,
    remove_training,
    settings,
    succeed,
)
from contract.dumps import assert_all_close, embed, read_dump
from parity import numpy_oracle as oracle
from parity.numpy_bilm import run_bilm

pytestmark = pytest.mark.usefixtures("no_training_picture")

# Distinct primes; a word is read up to eleven bytes, so that its fourth Chinese character is cut.
SLOTS, DIMENSION, NUM_HIGHWAYS = 13, 5, 2
FILTERS = [[1, 2], [3, 3], [7, 19]]
SETTINGS = (
    "model.mode=character",
    f"model.character_slots={SLOTS}",
    f"model.character_dim={DIMENSION}",
    f"model.character_filters={FILTERS}",
    f"model.highway_layers={NUM_HIGHWAYS}",
    f"train.max_tokens={40 * STEP_TOKENS}",
)


@pytest.fixture(scope="module")
def character_run(sample_run: SampleRun, tmp_path_factory: pytest.TempPathFactory) -> SampleRun:
    """The sample's text once more, in character mode."""
    folder = tmp_path_factory.mktemp("characters")
    path = folder / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        arguments = ("--run", path, "--config", sample_run.config, *settings(*SETTINGS))
        answer = elmo_zh("pipeline", sample_run.corpus, *arguments)
    assert answer.status == 0, answer.stderr
    return SampleRun(folder, sample_run.corpus, sample_run.config, path, answer)


@pytest.fixture
def changeable(character_run: SampleRun, tmp_path: Path) -> Path:
    return Path(shutil.copytree(character_run.path, tmp_path / "copy"))


def heldout_sentences(run: SampleRun) -> list[list[str]]:
    return [line.split(" ") for line in run.heldout.read_text(encoding="utf-8").splitlines()]


# Of two known words, one is read whole and one is not; then words never seen, and words spelled like marks.
EXTRA_LINES = (
    "我 齉龘 苹果 。",
    "",
    "我 齉龘齉龘 齉龘齉龙 ab齉龘齉龘",
    "<S> 我 </S> <UNK>",
    "a\u2028b ， abcdefghijk abcdefghijkl",
)


@pytest.fixture(scope="module")
def text(character_run: SampleRun) -> Path:
    path = character_run.folder / "text.txt"
    heldout = character_run.heldout.read_text(encoding="utf-8")
    path.write_text(heldout + "".join(f"{line}\n" for line in EXTRA_LINES), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def sentences(character_run: SampleRun, text: Path) -> list[list[str]]:
    return heldout_sentences(character_run) + [line.split() for line in EXTRA_LINES[:-1]] + [EXTRA_LINES[-1].split(" ")]


@pytest.fixture(scope="module")
def reference(character_run: SampleRun) -> oracle.Bundle:
    return oracle.load_bundle(character_run.model)


def test_vectors_equal_the_oracle(
    character_run: SampleRun, text: Path, sentences: list[list[str]], reference: oracle.Bundle, tmp_path: Path
) -> None:
    result = embed(character_run, text, "--segmented", "--output", tmp_path / "out.hdf5", "--json").result()
    assert (result["lines"], result["tokens"]) == (len(sentences), sum(map(len, sentences)))
    # Every word has a spelling, so that none is unknown.
    assert result["unknown_tokens"] == 0
    assert result["cut_tokens"] == sum(len(word.encode()) > SLOTS - 2 for words in sentences for word in words)
    assert result["cut_tokens"] >= 4
    vectors, *_ = read_dump(tmp_path / "out.hdf5")
    assert_all_close(vectors, [oracle.layer_activations(reference, words) for words in sentences], 1e-5)
    # Words that differ in their twelfth byte are the same to this model, others are not.
    cut = vectors[-3][0]
    np.testing.assert_allclose(cut[1], cut[2], rtol=0, atol=1e-6)
    assert np.abs(cut[1] - cut[3]).max() > 1e-3
    unseen = vectors[-5][0]
    assert np.abs(unseen[1] - unseen[2]).max() > 1e-3


def test_perplexity_in_training_equals_the_oracle(character_run: SampleRun, reference: oracle.Bundle) -> None:
    full = next(line for line in metrics_lines(character_run.path) if line.get("heldout_set") == "full")
    expected = oracle.evaluate(reference, heldout_sentences(character_run))
    del expected["num_predictions"]
    for name, value in expected.items():
        assert full[f"heldout_{name}"] == pytest.approx(value, rel=1e-4), name


def test_only_the_card_of_a_token_mode_model_says_how_unknown_words_are_read(
    sample_run: SampleRun, character_run: SampleRun
) -> None:
    cards = [(run.model / "model_card.md").read_text(encoding="utf-8") for run in (sample_run, character_run)]
    assert ["`<UNK>`" in card for card in cards] == [True, False]


def test_an_untrained_run_may_change_its_mode(changeable: Path, sample_run: SampleRun) -> None:
    remove_training(changeable)
    answer = elmo_zh("encode", "--run", changeable, "--set", "model.mode=token", "--json")
    assert answer.result()["skipped"] is False
    assert contents_alone(changeable / "ids") == contents_alone(sample_run.path / "ids")
    # And back. Ids made for the other mode are not trained on.
    told = elmo_zh("train", "--run", changeable, "--set", "model.mode=character").only_error()
    assert told.startswith(f"{changeable / 'ids'} does not match model.mode.")
    assert told.endswith(f" Recreate it with: elmo-zh encode --run {changeable} --force")
    assert elmo_zh("encode", "--run", changeable, "--set", "model.mode=character").status == 0
    assert (changeable / "ids" / "other_words.txt").exists()


def test_float16_weights_are_read_as_the_oracle_reads_them(sample_run: SampleRun, tmp_path: Path) -> None:
    half, text = tmp_path / "half", tmp_path / "t.txt"
    text.write_text("今天天气很好。\n我们去公园散步。\n", encoding="utf-8")
    assert elmo_zh("export", "--run", sample_run.path, "--dtype", "float16", "--output", half).status == 0
    assert not (half / "vocab_embedding.hdf5").exists()
    assert (half / "word2vec.hdf5").stat().st_size < 0.75 * (sample_run.model / "word2vec.hdf5").stat().st_size
    assert elmo_zh("info", half, "--check").status == 0
    for model, name in ((sample_run.model, "full"), (half, "half")):
        output = ("--unknown", "unk", "--output", tmp_path / f"{name}.hdf5")
        assert elmo_zh("embed", text, "--model", model, *output).status == 0
    reference = oracle.load_bundle(half)
    with h5py.File(tmp_path / "full.hdf5") as full, h5py.File(tmp_path / "half.hdf5") as rounded:
        for line in ("0", "1"):
            words = [word.decode() for word in rounded[f"tokens/{line}"][()]]
            expected = oracle.layer_activations(reference, words)
            np.testing.assert_allclose(rounded[line][()], expected, rtol=0, atol=1e-5)
            np.testing.assert_allclose(rounded[line][()], full[line][()], rtol=0, atol=5e-3)
            assert not np.array_equal(rounded[line][()], full[line][()])


def test_a_model_trained_with_carried_state_gets_a_warm_state(changeable: Path, text: Path, tmp_path: Path) -> None:
    changes = settings("train.carry_state=true", f"train.max_tokens={10 * STEP_TOKENS}")
    assert elmo_zh("train", "--run", changeable, "--force", *changes).status == 0
    succeed("export", "--run", changeable)
    model = changeable / "model"
    assert json.loads((model / "bundle.json").read_text(encoding="utf-8"))["carry_state"] is True
    with h5py.File(model / "warm_state.hdf5") as file:
        assert (file["output"].shape, file["cell"].shape) == ((LAYERS, 2, PROJECTION), (LAYERS, 2, CELL))
        warm = [[(c, h) for c, h in zip(file["cell"][:, d], file["output"][:, d], strict=True)] for d in range(2)]
    answer = elmo_zh("embed", text, "--segmented", "--model", model, "--output", tmp_path / "out.hdf5", "--quiet")
    assert (answer.status, answer.stderr) == (0, "")
    reference = oracle.load_bundle(model)
    words = text.read_text(encoding="utf-8").splitlines()[3].split(" ")
    expected, _ = run_bilm(reference.bilm, oracle.token_vectors(reference, words), warm)
    np.testing.assert_allclose(read_dump(tmp_path / "out.hdf5")[0][3], expected[:, 1:-1], rtol=0, atol=1e-5)
