"""Models of ELMoForManyLangs become bundles with the vectors of a NumPy oracle written for that architecture.

The oracle shares no code with `elmo_zh`, nor with the oracle of the published layout: gates, highways, marks and the
place of the forget gate's 1 are others.
"""

import hashlib
import io
import json
import pickle
import shutil
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from contract.command_line import changed_json, elmo_zh, succeed
from numpy.typing import NDArray

from elmo_zh import Elmo, ElmoEmbedder
from elmo_zh.convert import manylangs

Array = NDArray[np.float64]

# Distinct primes: P, D, L; c, N (the filters'), slots, width of a word's embedding.
P, D, L = 5, 11, 2
C_DIM, FILTERS, N, SLOTS, WORD_DIM = 3, ((1, 2), (2, 4), (3, 7)), 13, 7, 19
CELL_CLIP, PROJECTION_CLIP = 0.6, 0.3
# Their numbers follow no rule that ours could follow by chance: the marks stand anywhere, padding in the middle.
CHARACTERS = ["我", "<eos>", *"们今", "<bow>", "天", "<pad>", "吃", "<oov>", *"\u3000a", "<bos>", "。", "<eow>", "q"]
WORDS = ["今天", "<oov>", "<pad>", "我们", "<bos>", "吃", "a\u3000a", "<eos>", "。", "吃今天我们"]
# 桃 is no character of theirs, 天天 no word. Five characters of a word are read, so that the last one is cut.
SENTENCES = (
    ["今天", "吃", "桃", "。"],
    ["我们", "天天", "a\u3000a"],
    ["吃"],
    ["吃今天我们", "今天我们吃吃吃"],
    ["我们"] * 5,
)


class Reference:
    """The forward pass, one word and one step at a time."""

    def __init__(self, arrays: dict[str, dict[str, Array]], *, has_words: bool, swapped_marks: bool = True) -> None:
        self.tokens, self.lstm = arrays["token_embedder"], arrays["encoder"]
        self.has_words, self.swapped_marks = has_words, swapped_marks

    def spell(self, word: str) -> list[int]:
        """What stands before the first character is called <eow>, and after the last one <bow>."""
        begin, end = ("<eow>", "<bow>") if self.swapped_marks else ("<bow>", "<eow>")
        content = [word] if word in ("<bos>", "<eos>") else [c if c in CHARACTERS else "<oov>" for c in word]
        spelled = [begin, *content, end]
        return [CHARACTERS.index(name) for name in spelled + ["<pad>"] * (SLOTS - len(spelled))]

    def token_vector(self, word: str) -> Array:
        if word not in ("<bos>", "<eos>"):
            word = word[: SLOTS - 2]  # of which the embedding is looked up, too
        characters = self.tokens["char_emb_layer.embedding.weight"][self.spell(word)].T  # (c, slots)
        pooled = []
        for k, (width, count) in enumerate(FILTERS):
            kernel, bias = self.tokens[f"convolutions.{k}.weight"], self.tokens[f"convolutions.{k}.bias"]
            windows = range(SLOTS - width + 1)
            responses = [[np.sum(kernel[n] * characters[:, t : t + width]) for t in windows] for n in range(count)]
            pooled += list(np.maximum(np.max(responses, axis=1) + bias, 0))
        x = np.array(pooled)
        for k in range(2):
            both = self.tokens[f"highways._layers.{k}.weight"] @ x + self.tokens[f"highways._layers.{k}.bias"]
            stays = 1 / (1 + np.exp(-both[N:]))
            x = stays * x + (1 - stays) * np.maximum(both[:N], 0)
        if self.has_words:
            row = WORDS.index(word) if word in WORDS else WORDS.index("<oov>")
            x = np.concatenate([self.tokens["word_emb_layer.embedding.weight"][row], x])
        return np.asarray(self.tokens["projection.weight"] @ x + self.tokens["projection.bias"])

    def layer(self, way: str, i: int, inputs: Sequence[Array]) -> list[Array]:
        part = {
            name.split(".", 1)[1]: value for name, value in self.lstm.items() if name.startswith(f"{way}_layer_{i}.")
        }
        h, c, outputs = np.zeros(P), np.zeros(D), []
        for x in inputs:
            z = part["input_linearity.weight"] @ x + part["state_linearity.weight"] @ h + part["state_linearity.bias"]
            gates = 1 / (1 + np.exp(-z))
            candidate = np.tanh(z[2 * D : 3 * D])
            c = np.clip(gates[:D] * candidate + gates[D : 2 * D] * c, -CELL_CLIP, CELL_CLIP)
            h = part["state_projection.weight"] @ (gates[3 * D :] * np.tanh(c))
            h = np.clip(h, -PROJECTION_CLIP, PROJECTION_CLIP)
            outputs.append(h)
        return outputs

    def layers(self, words: Sequence[str]) -> Array:
        """Return all layers of a sentence from zero state, shape (L + 1, n, 2P)."""
        vectors = [self.token_vector(word) for word in ["<bos>", *words, "<eos>"]]
        halves = []
        for way, step in (("forward", 1), ("backward", -1)):
            activations = [vectors[::step]]
            for i in range(L):
                outputs = self.layer(way, i, activations[-1])
                if i > 0:
                    outputs = [h + x for h, x in zip(outputs, activations[-1], strict=True)]
                activations.append(outputs)
            halves.append(np.array([rows[::step] for rows in activations]))
        return np.concatenate(halves, axis=2)[:, 1:-1]


def draw_arrays(*, has_words: bool) -> dict[str, dict[str, Array]]:
    tokens: dict[str, tuple[int, ...]] = {"char_emb_layer.embedding.weight": (len(CHARACTERS), C_DIM)}
    if has_words:
        tokens["word_emb_layer.embedding.weight"] = (len(WORDS), WORD_DIM)
    for k, (width, count) in enumerate(FILTERS):
        tokens |= {f"convolutions.{k}.weight": (count, C_DIM, width), f"convolutions.{k}.bias": (count,)}
    for k in range(2):
        tokens |= {f"highways._layers.{k}.weight": (2 * N, N), f"highways._layers.{k}.bias": (2 * N,)}
    tokens |= {"projection.weight": (P, N + has_words * WORD_DIM), "projection.bias": (P,)}
    encoder: dict[str, tuple[int, ...]] = {}
    for way in ("forward", "backward"):
        for i in range(L):
            encoder |= {
                f"{way}_layer_{i}.input_linearity.weight": (4 * D, P),
                f"{way}_layer_{i}.state_linearity.weight": (4 * D, P),
                f"{way}_layer_{i}.state_linearity.bias": (4 * D,),
                f"{way}_layer_{i}.state_projection.weight": (P, D),
            }
    random = np.random.default_rng(29)
    return {
        part: {name: random.normal(0, 0.5, shape).astype(np.float32).astype(float) for name, shape in shapes.items()}
        for part, shapes in (("token_embedder", tokens), ("encoder", encoder))
    }


def configuration(*, has_words: bool) -> dict[str, Any]:
    return {
        "encoder": {
            "name": "elmo",
            "projection_dim": P,
            "cell_clip": CELL_CLIP,
            "proj_clip": PROJECTION_CLIP,
            "dim": D,
            "n_layers": L,
        },
        "token_embedder": {
            "name": "cnn",
            "activation": "relu",
            "filters": [list(pair) for pair in FILTERS],
            "n_highway": 2,
            "word_dim": has_words * WORD_DIM,
            "char_dim": C_DIM,
            "max_characters_per_token": SLOTS,
        },
        "classifier": {"name": "sampled_softmax", "n_samples": 8192},
        "dropout": 0.1,
    }


def state_dict(arrays: dict[str, Array]) -> "OrderedDict[str, torch.Tensor]":
    """As a module's `state_dict()` is, metadata included."""
    state = OrderedDict((name, torch.from_numpy(array).float()) for name, array in arrays.items())
    state._metadata = OrderedDict([("", {"version": 1})])  # type: ignore[attr-defined]
    return state


def write_dictionary(path: Path, names: Sequence[str]) -> None:
    """Their loader strips the lines, so that the ideographic space is lost; so it stands in some files, too."""
    lines = [f"{name.strip()}\t{number}" if name.strip() else str(number) for number, name in enumerate(names)]
    path.write_text("".join(f"{line}\n" for line in lines[::-1]), encoding="utf-8")


CONFIG = "cnn_zhs.json"


def write_model(folder: Path, *, has_words: bool, legacy: bool = False, lost_space: bool = True) -> Path:
    folder.mkdir(parents=True)
    for part, arrays in draw_arrays(has_words=has_words).items():
        torch.save(state_dict(arrays), folder / f"{part}.pkl", _use_new_zipfile_serialization=not legacy)
    write_json(folder / "config.json", {"seed": 1, "config_path": f"/home/someone/ELMo/configs/{CONFIG}"})
    write_json(folder / CONFIG, configuration(has_words=has_words))
    write_dictionary(folder / "char.dic", CHARACTERS)
    if not lost_space:
        text = (folder / "char.dic").read_text(encoding="utf-8").replace("\n9\n", "\n\u3000\t9\n")
        (folder / "char.dic").write_text(text, encoding="utf-8")
    # There always is one, with word embeddings or without.
    write_dictionary(folder / "word.dic", WORDS)
    return folder


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


@dataclass(frozen=True)
class Model:
    """A model that tests only read, what the command makes of it, and what the oracle makes of it."""

    source: Path
    bundle: Path
    reference: Reference


@pytest.fixture(scope="module", params=[False, True])
def has_words(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def model(has_words: bool, tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("model")
    source = write_model(folder / "zhs.model", has_words=has_words)
    convert(source, folder / "bundle")
    return Model(source, folder / "bundle", Reference(draw_arrays(has_words=has_words), has_words=has_words))


def assert_same_vectors(
    bundle: Path, reference: Reference, sentences: Sequence[Sequence[str]] = SENTENCES
) -> list[NDArray[np.float32]]:
    found = ElmoEmbedder.load(bundle).embed_tokens(sentences)
    for words, ours in zip(sentences, found, strict=True):
        np.testing.assert_allclose(ours, reference.layers(words), rtol=0, atol=1e-5)
    return found


def convert(source: Path, output: Path, *options: str | Path) -> Any:
    return elmo_zh("convert", source, "--output", output, "--json", *options).result()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "bundle"


@pytest.mark.parametrize("legacy", [False, True])
def test_vectors_equal_the_oracle(model: Model, tmp_path: Path, out: Path, has_words: bool, legacy: bool) -> None:
    """All released models are of the time before PyTorch's files were zip archives."""
    source = write_model(tmp_path / "zhs.model", has_words=has_words, legacy=legacy)
    if not has_words:
        (source / "word.dic").unlink()
    assert zipfile.is_zipfile(source / "encoder.pkl") == (not legacy)
    expected = {"output": str(out), "mode": "character", "warm_state": False}
    assert expected.items() <= convert(source, out).items()
    found = assert_same_vectors(out, model.reference)
    assert [ElmoEmbedder.load(out).count_cut(words) for words in SENTENCES] == [0, 0, 0, 1, 0]
    # The clips are within reach.
    assert (np.abs(found[3][1]) == np.float32(PROJECTION_CLIP)).any()


def test_what_the_bundle_says(model: Model, out: Path, has_words: bool) -> None:
    answer = succeed("convert", model.source, "--output", out)
    assert answer.stderr.startswith("This model was trained with carried state")
    info = json.loads((out / "bundle.json").read_text(encoding="utf-8"))
    assert info["carry_state"] is True
    assert info["segmenter"] is info["text"] is None
    assert info["origin"]["program"] == "ELMoForManyLangs"
    names = [CONFIG, "encoder.pkl", "token_embedder.pkl", "char.dic", *(["word.dic"] if has_words else [])]
    digests = {name: f"sha256:{hashlib.sha256((model.source / name).read_bytes()).hexdigest()}" for name in names}
    assert digests.items() <= info["origin"]["files"].items()
    arguments = ("convert", out, "--output", out.with_name("other"), "--layout", "simple_elmo")
    assert "--layout bundle" in elmo_zh(*arguments).only_error()
    # Our rows are the specials and then their words in the order of their numbers.
    vocabulary = [*("<S>", "</S>", "<UNK>"), "今天", "我们", "吃", "a\u3000a", "。", "吃今天我们"]
    words = (out / "vocab.data").read_text(encoding="utf-8").split("\n")[:-1] if has_words else None
    assert words == (vocabulary if has_words else None)


def test_marks_that_are_not_swapped(model: Model, out: Path, has_words: bool) -> None:
    straight = Reference(draw_arrays(has_words=has_words), has_words=has_words, swapped_marks=False)
    assert np.abs(model.reference.layers(SENTENCES[0]) - straight.layers(SENTENCES[0])).max() > 0.01
    convert(model.source, out, "--straight-marks")
    assert_same_vectors(out, straight)


def test_the_ideographic_space(model: Model, tmp_path: Path, out: Path, has_words: bool) -> None:
    """It is lost in one kind of file; it is neither unknown nor another character in either."""
    convert(write_model(tmp_path / "model", has_words=has_words, lost_space=False), out)
    for bundle in (model.bundle, out):
        [[[space, other, unknown], *_]] = assert_same_vectors(bundle, model.reference, [["a\u3000a", "aqa", "a桃a"]])
        assert min(np.abs(space - other).max(), np.abs(space - unknown).max()) > 0.01


def test_a_bundle_of_it_can_be_warmed_checked_and_read(model: Model, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("今天 吃 桃\n我们 吃\n", encoding="utf-8")
    assert convert(model.bundle, tmp_path / "warm", "--warm-on", text, "--segmented")["warm_state"] is True
    assert elmo_zh("info", tmp_path / "warm", "--check").status == 0
    assert elmo_zh("embed", text, "--segmented", "--model", model.bundle).status == 0
    with h5py.File(tmp_path / "text.txt.hdf5") as file:
        np.testing.assert_allclose(file["0"][()], model.reference.layers(["今天", "吃", "桃"]), rtol=0, atol=1e-5)


def test_as_a_module(model: Model, has_words: bool) -> None:
    if has_words:
        with pytest.raises(ValueError, match="needs words as well as their characters; use ElmoEmbedder"):
            Elmo.from_bundle(model.bundle)
        return
    elmo = Elmo.from_bundle(model.bundle, scalar_mix_parameters=[-1e9, -1e9, 0.0], dropout=0.0)
    found = elmo(elmo.batch_to_ids([SENTENCES[0]]))["elmo_representations"][0]
    expected = model.reference.layers(SENTENCES[0])[2]
    np.testing.assert_allclose(found[0].detach().numpy(), expected, rtol=0, atol=1e-5)


# The configuration


@pytest.fixture(scope="module")
def sound_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("sound") / "model", has_words=True)


@pytest.fixture
def source(sound_source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound_source, tmp_path / "model"))


def test_a_configuration_in_configs_or_named_explicitly(source: Path, tmp_path: Path, out: Path) -> None:
    (source / "configs").mkdir()
    (source / CONFIG).rename(source / "configs" / CONFIG)
    convert(source, out)
    (source / "configs" / CONFIG).rename(tmp_path / "elsewhere.json")
    for path in (f"elsewhere/{CONFIG}", f"../{CONFIG}", str(tmp_path / CONFIG)):  # no path leads out of the folder
        shutil.copyfile(tmp_path / "elsewhere.json", tmp_path / CONFIG)
        write_json(source / "config.json", {"config_path": path})
        told = elmo_zh("convert", source, "--output", tmp_path / "x").only_error()
        assert told == f"{source / 'config.json'} needs --options {CONFIG}."
    convert(source, tmp_path / "x", "--options", tmp_path / "elsewhere.json")
    assert_same_vectors(tmp_path / "x", Reference(draw_arrays(has_words=True), has_words=True))


@pytest.mark.parametrize("name", ["cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json"])
def test_the_configuration_of_the_released_models_need_not_be_there(
    model: Model, tmp_path: Path, out: Path, has_words: bool, name: str
) -> None:
    """Its sizes, of Peters et al.: 512 and 4,096 in two layers, 2,048 filters, characters of 50."""
    source = Path(shutil.copytree(model.source, tmp_path / "model"))
    write_json(source / "config.json", {"config_path": f"/elsewhere/configs/{name}"})
    lstm = 2 * 2 * (1024 * 16384 + 16384 + 4096 * 512)
    filters = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    tokens = 15 * 50 + sum(width * 50 * count + count for width, count in filters) + 2 * 2 * (2048 * 2048 + 2048)
    tokens += has_words * 9 * 100 + (2048 + 100 * has_words) * 512 + 512
    assert f" ({tokens + lstm:,} numbers are described, but the files hold " in refused(source, out)
    # One that is there is taken.
    write_json(source / name, configuration(has_words=has_words))
    convert(source, out)
    assert_same_vectors(out, model.reference)


# What is missing or does not fit


def refused(source: Path, out: Path) -> str:
    """Return the one line that is told, with nothing left behind."""
    answer = elmo_zh("convert", source, "--output", out)
    told = answer.only_error()
    assert answer.stderr == f"Error: {told}\n"
    assert list(out.parent.iterdir()) == []
    return told


Change = Callable[[Path], object]


def without(name: str) -> Change:
    return lambda source: (source / name).unlink()


def edited(name: str, old: str, new: str) -> Change:
    """Nothing old stands for the end of the file."""

    def change(source: Path) -> None:
        text = (source / name).read_text(encoding="utf-8")
        assert old in text
        (source / name).write_text(text.replace(old, new) if old else f"{text}{new}\n", encoding="utf-8")

    return change


def with_config(section: str, **values: Any) -> Change:
    def change(source: Path) -> None:
        with changed_json(source / CONFIG) as config:
            config[section] |= values
            config[section] = {name: value for name, value in config[section].items() if value != "gone"}

    return change


def with_tensor(name: Any, tensor: torch.Tensor | None, part: str = "encoder") -> Change:
    def change(source: Path) -> None:
        state = torch.load(source / f"{part}.pkl", weights_only=True)
        state[name] = tensor
        torch.save({key: value for key, value in state.items() if value is not None}, source / f"{part}.pkl")

    return change


def with_pickle(value: Any) -> Change:
    def change(source: Path) -> None:
        path = source / "encoder.pkl"
        path.write_bytes(value) if isinstance(value, bytes) else torch.save(value, path)

    return change


MARKS = {"char.dic": ("bos", "eos", "oov", "bow", "eow", "pad"), "word.dic": ("bos", "eos", "oov")}
BIAS = "forward_layer_1.state_linearity.bias"
# Which changes are told of which file.
REFUSALS: dict[str, list[Change]] = {
    "/config.json needs --options FILE": [edited("config.json", "config_path", "path")],
    **{f"/{name} ": [without(name)] for name in (*MARKS, "config.json")},
    "/char.dic is damaged": [
        *(edited("char.dic", f"<{mark}>", "x") for mark in MARKS["char.dic"]),
        *(edited("char.dic", "", line) for line in ("花\t-1", "", "长\t" + "9" * 5000, "花\t3", "花\t33")),
    ],
    "/word.dic is damaged": [edited("word.dic", f"<{mark}>", "x") for mark in MARKS["word.dic"]],
    f"/{CONFIG}": [
        *(
            with_config(section, **{key: "gone"})
            for section in ("encoder", "token_embedder")
            for key in configuration(has_words=True)[section]
        ),
        *(with_config(section, name="lstm") for section in ("encoder", "token_embedder")),
        *(with_config("encoder", dim=value) for value in ("large", 2)),
        with_config("token_embedder", activation="gelu"),
        with_config("token_embedder", max_characters_per_token=2),
    ],
    ": the configuration does not match this model": [
        # Dictionaries of another model: their own program refuses them, too, as the number of rows is another.
        edited("char.dic", "", "花\t15"),
        edited("word.dic", "吃今天我们\t9\n", ""),
        with_config("encoder", projection_dim=P + 2),
        # More weights than are described: left out without a word, they would give vectors of another model.
        *(with_config("encoder", n_layers=number) for number in (1, L + 1)),
        with_config("encoder", dim=10**9, projection_dim=10**9),
        *(with_config("token_embedder", n_highway=number) for number in (1, 3, 1000)),
        *(with_config("token_embedder", char_dim=dim) for dim in (C_DIM + 2, 10**9)),
        *(with_config("token_embedder", word_dim=dim) for dim in (WORD_DIM + 2, 0)),
        *(with_config("token_embedder", filters=pairs) for pairs in ([[1, 2], [2, 4], [5, 7]], [[1, 10**9]])),
        with_tensor(BIAS, None),
        with_tensor(BIAS, torch.full((4 * D,), torch.nan)),
        with_tensor("forward_layer_0.input_linearity.weight", torch.zeros(4 * D)),
        with_tensor("projection.bias", None, "token_embedder"),
        with_tensor("char_emb_layer.embedding.weight", torch.zeros(3), "token_embedder"),
    ],
    "/encoder.pkl is damaged": [
        *(with_tensor(BIAS, tensor) for tensor in (torch.zeros(4 * D).to_sparse(), torch.zeros(4 * D).long())),
        with_tensor(7, torch.zeros(4 * D)),
        *map(with_pickle, ([torch.zeros(3)], {"state_dict": {"a": torch.zeros(3)}}, None, b"no pickle")),
        # torch's restricted unpickler ends with IndexError on this one,
        with_pickle(b"\x80\x02."),
        # and warns on stderr of any other protocol than 2 before it refuses.
        with_pickle(pickle.dumps({"a": 1}, protocol=4)),
    ],
}
REFUSED = [(change, where) for where, changes in REFUSALS.items() for change in changes]


@pytest.mark.parametrize(("change", "where"), REFUSED)
def test_what_does_not_fit_is_refused(source: Path, out: Path, change: Change, where: str) -> None:
    change(source)
    assert refused(source, out).startswith(f"{source}{where}")


# Pickles


class Trap:
    """Unpickled, it would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("part", ["encoder", "token_embedder"])
@pytest.mark.parametrize("legacy", [False, True])
def test_code_in_a_pickle_is_never_run(source: Path, tmp_path: Path, out: Path, part: str, legacy: bool) -> None:
    path, trapped = source / f"{part}.pkl", tmp_path / "trapped"
    state = torch.load(path, weights_only=True) | {"bias": Trap(trapped)}
    torch.save(state, path, _use_new_zipfile_serialization=not legacy)
    told = refused(source, out)
    assert not trapped.exists()
    assert told.startswith(f"{path} is damaged (UnpicklingError: ")
    # The trap works where it is not looked out for.
    pickle.loads(pickle.dumps(Trap(trapped))).close()
    assert trapped.exists()


def test_weights_that_claim_more_than_is_stored_take_no_memory(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of a few kB could say that it holds a model of many GB."""

    def fail(*_: object) -> None:
        raise AssertionError("memory was taken")

    dim = 10_007
    shapes: dict[str, tuple[int, ...]] = {"input_linearity.weight": (4 * dim, P), "state_linearity.bias": (4 * dim,)}
    shapes |= {"state_linearity.weight": (4 * dim, P), "state_projection.weight": (P, dim)}
    names = [f"{way}_layer_{i}" for way in ("forward", "backward") for i in range(L)]
    state = {f"{layer}.{name}": torch.zeros(1).expand(shape) for layer in names for name, shape in shapes.items()}
    torch.save(state, source / "encoder.pkl")
    assert (source / "encoder.pkl").stat().st_size < 10_000
    with_config("encoder", dim=dim)(source)
    monkeypatch.setattr(manylangs, "_checked", fail)
    monkeypatch.setattr(torch, "stack", fail)
    assert str(source) in refused(source, out)


def test_a_packed_state_dict_that_grows_is_refused(source: Path, out: Path) -> None:
    """PyTorch's files are zip archives whose parts are stored as they are; it unpacks others as well."""
    buffer, path = io.BytesIO(), source / "encoder.pkl"
    torch.save({"x": torch.zeros(5_000_003)}, buffer)
    with zipfile.ZipFile(buffer) as plain, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for entry in plain.infolist():
            packed.writestr(entry.filename, plain.read(entry))
    assert path.stat().st_size < 50_000
    assert refused(source, out).startswith(f"{path} ")
