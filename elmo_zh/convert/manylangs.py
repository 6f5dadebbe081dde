"""Models of ELMoForManyLangs: LSTMs, a CNN over Unicode characters and optional word embeddings, as PyTorch weights.

How its code differs from the published layout: the order of the gates is i, f, j, o, and the forget
gate's bias includes the 1 that bilm-tf adds later; a highway gate is the fraction of the input that is kept, not the
fraction that is transformed; the marks for the beginning and the end of a word are swapped (the loader looks up `<eow>`
for the beginning), also during training, so all released models need the swap; a word's embedding precedes the CNN's
output; there is always a projection.
"""

import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_zh.bundle.options_json import load_options, parse_shape
from elmo_zh.bundle.read import BundleContent
from elmo_zh.bundle.weights import num_parameters, parameter_shapes
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import BundleError
from elmo_zh.language import N_, _
from elmo_zh.reader.bilm import BiLMShape
from elmo_zh.reader.lstm import Floats
from elmo_zh.reader.weights import ModelWeights
from elmo_zh.run.files import file_digest
from elmo_zh.vocabulary.lexicon import Alphabet
from elmo_zh.vocabulary.spelling import SpellingModel
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

ENCODER, TOKEN_EMBEDDER = "encoder.pkl", "token_embedder.pkl"
# Their names for the first three entries of our vocabulary.
_THEIR_SPECIALS = ("<bos>", "<eos>", "<oov>")
_CHARACTER_MARKS = (*_THEIR_SPECIALS, "<bow>", "<eow>", "<pad>")
# Settings that have the published names.
_LSTM_KEYS = ("dim", "projection_dim", "n_layers", "cell_clip", "proj_clip")
_CNN_KEYS = ("filters", "n_highway", "max_characters_per_token", "activation")
_OTHER_MODEL = N_(
    "{path}: the configuration does not match this model ({error}). Specify another one (--options FILE), or download"
    " the model again."
)

# The configuration of all released models, which only name it: the file comes with ELMoForManyLangs.
_RELEASED_NAMES = ("cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json")
_RELEASED_CONFIG: dict[str, Any] = {
    "encoder": {"name": "elmo", "dim": 4096, "projection_dim": 512, "n_layers": 2, "cell_clip": 3, "proj_clip": 3},
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
}


def is_manylangs(folder: Path) -> bool:
    """Return whether a folder holds a model of ELMoForManyLangs."""
    return (folder / ENCODER).is_file() and (folder / TOKEN_EMBEDDER).is_file()


def read_manylangs(folder: Path, options: Path | None, *, swapped_marks: bool) -> BundleContent:
    """Read a model of ELMoForManyLangs; without `options`, config.json names the configuration."""
    config_path = options or _find_config(folder)
    config = _RELEASED_CONFIG if config_path is None else load_options(config_path)
    used = [config_path or folder / "config.json", folder / ENCODER, folder / TOKEN_EMBEDDER, folder / "char.dic"]
    token_embedder, encoder = _load_state_dict(folder / TOKEN_EMBEDDER), _load_state_dict(folder / ENCODER)
    characters = _load_dictionary(folder / "char.dic", _CHARACTER_MARKS)
    words: list[str] = []
    if "word_emb_layer.embedding.weight" in token_embedder:
        words = _load_dictionary(folder / "word.dic", _THEIR_SPECIALS)
        used.append(folder / "word.dic")
    plain = [word for word in words if word not in (*_THEIR_SPECIALS, "<pad>", *SPECIALS)]
    vocabulary = Vocabulary([*SPECIALS, *plain]) if words else None
    # Our order is theirs, but padding is the last character, and the special tokens are the first words.
    ordered = [*(name for name in characters if name != "<pad>"), "<pad>"]
    orders = {
        "char_emb_layer": _order(characters, ordered),
        "word_emb_layer": _order(words, [*_THEIR_SPECIALS, *plain] if words else []),
    }
    shape = _parse_shape(config, used[0], len(characters), vocabulary)
    return BundleContent(
        weights=_weights(shape, token_embedder, encoder, orders, folder),
        vocabulary=vocabulary,
        spelling=SpellingModel.build({}),
        user_dictionary=None,
        text=None,
        training_options={},
        carry_state=True,
        training={},
        origin={"program": "ELMoForManyLangs", "files": {path.name: file_digest(path) for path in used}},
        alphabet=_alphabet(ordered, swapped_marks=swapped_marks),
    )


def _find_config(folder: Path) -> Path | None:
    """Return the file that config.json names. If missing, return None for a released one, else raise BundleError."""
    name = Path(str(load_options(folder / "config.json").get("config_path", "FILE"))).name
    for path in (folder / name, folder / "configs" / name):
        if path.is_file():
            return path
    if name in _RELEASED_NAMES:
        return None
    raise BundleError.needs(folder / "config.json", f"--options {name}")


def _load_state_dict(path: Path) -> dict[str, Tensor]:
    try:
        if path.is_file() and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                    raise ValueError("its weights are compressed, which PyTorch never does")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that are refused anyway
            state = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # a malicious file can make torch's restricted unpickler fail with any exception
        raise BundleError.damaged(path, f"{type(error).__name__}: {str(error).splitlines()[:1]!s:.200}") from None
    if not isinstance(state, dict) or not all(_is_plain(name, value) for name, value in state.items()):
        raise BundleError.damaged(path, "it contains something other than named weights")
    stored = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in state.values()}
    claimed = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    if claimed > sum(stored.values()):
        raise BundleError.damaged(path, f"it claims {claimed:,} bytes of weights but has fewer")
    return dict(state)


def _is_plain(name: Any, value: Any) -> bool:
    is_dense = isinstance(value, Tensor) and value.layout == torch.strided and value.device.type == "cpu"
    return isinstance(name, str) and is_dense and value.is_floating_point()


def _load_dictionary(path: Path, needed: tuple[str, ...]) -> list[str]:
    """Return the entries of char.dic or word.dic in the order of their numbers; an empty entry stands for U+3000."""
    if not path.is_file():
        raise BundleError.missing(path)
    numbers: dict[str, int] = {}
    for line_number, line in enumerate(iter_lines(path), start=1):
        word, __, number = line.strip().rpartition("\t")
        if not number.isdecimal():
            raise BundleError.damaged(path, f"line {line_number} is not a word, a tab and a number: {line!r:.100}")
        numbers[word or "\u3000"] = int(number[:10])
    if missing := [name for name in needed if name not in numbers]:
        raise BundleError.damaged(path, f"it lacks {', '.join(missing)}")
    if sorted(numbers.values()) != list(range(len(numbers))):
        raise BundleError.damaged(path, "its numbers are not those of rows, each once")
    return sorted(numbers, key=numbers.__getitem__)


def _order(theirs: list[str], ours: list[str]) -> tuple[int, list[int]]:
    """Return the size of their table and, for each of our entries, its row in that table."""
    numbers = {name: number for number, name in enumerate(theirs)}
    return len(theirs), [numbers[name] for name in ours]


def _alphabet(ordered: list[str], *, swapped_marks: bool) -> Alphabet:
    """Return the alphabet that maps characters and marks to our ids."""
    ours = {name: number for number, name in enumerate(ordered)}
    begin, end = ("<eow>", "<bow>") if swapped_marks else ("<bow>", "<eow>")
    return Alphabet(
        begin_sentence=ours["<bos>"],
        end_sentence=ours["<eos>"],
        begin_word=ours[begin],
        end_word=ours[end],
        padding=ours["<pad>"],
        unknown=ours["<oov>"],
        numbers={name: number for name, number in ours.items() if len(name) == 1},
    )


def _parse_shape(
    config: Mapping[str, Any], path: Path, num_characters: int, vocabulary: Vocabulary | None
) -> BiLMShape:
    try:
        encoder, tokens = config["encoder"], config["token_embedder"]
        if encoder["name"].lower() != "elmo" or tokens["name"].lower() != "cnn":
            raise ValueError(f"encoder {encoder['name']} with token_embedder {tokens['name']}; expected elmo with cnn")
        published = {
            "lstm": {"use_skip_connections": True, **{name: encoder[name] for name in _LSTM_KEYS}},
            "char_cnn": {
                "unicode_characters": True,
                "n_characters": num_characters + 1,
                "embedding": {"dim": tokens["char_dim"]},
                "word_embedding": {"dim": tokens["word_dim"] if vocabulary else 0},
                **{name: tokens[name] for name in _CNN_KEYS},
            },
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BundleError(_(_OTHER_MODEL).format(path=path, error=repr(error))) from None
    return parse_shape(published, path, len(vocabulary) if vocabulary else None)


def _weights(
    shape: BiLMShape,
    token_embedder: dict[str, Tensor],
    encoder: dict[str, Tensor],
    orders: Mapping[str, tuple[int, list[int]]],
    folder: Path,
) -> ModelWeights:
    """Return all weights; raise BundleError unless the files contain every parameter and nothing else."""
    held = sum(tensor.numel() for state in (token_embedder, encoder) for tensor in state.values())
    try:
        if num_parameters(shape) > held:
            raise ValueError(f"{num_parameters(shape):,} numbers are described, but the files hold {held:,}")
        parameters = dict(_token_parameters(token_embedder, shape, orders))
        parameters |= _lstm_parameters(encoder, shape)
        if left_over := [*token_embedder, *encoder]:
            raise ValueError(f"unknown weights: {', '.join(left_over)}")
        arrays = {name: _checked(name, parameters[name], sizes) for name, sizes in parameter_shapes(shape).items()}
    except (KeyError, RuntimeError, ValueError, IndexError) as error:
        raise BundleError(_(_OTHER_MODEL).format(path=folder, error=error)) from None
    return ModelWeights(shape=shape, arrays=arrays)


def _checked(name: str, tensor: Tensor, expected: tuple[int, ...]) -> Floats:
    """Return a tensor as float32; raise ValueError unless it is finite and has the expected shape."""
    value = tensor.float()
    if tuple(value.shape) != expected or not bool(torch.isfinite(value).all()):
        raise ValueError(f"{name} has shape {tuple(value.shape)}; expected finite numbers of shape {expected}")
    return value.contiguous().numpy()


def _token_parameters(
    state: dict[str, Tensor], shape: BiLMShape, orders: Mapping[str, tuple[int, list[int]]]
) -> Iterator[tuple[str, Tensor]]:
    characters, ours = shape.characters, "bilm.character_cnn"
    assert characters is not None

    def table(layer: str) -> Tensor:
        rows, (size, order) = state.pop(f"{layer}.embedding.weight"), orders[layer]
        if len(rows) != size:
            raise ValueError(f"{layer} has {len(rows)} rows, but its dictionary {size} entries")
        return rows[order]

    yield f"{ours}.embedding", table("char_emb_layer")
    if characters.word_dim:
        yield f"{ours}.word_embedding", table("word_emb_layer")
    for k in range(len(characters.filters)):
        yield f"{ours}.kernels.{k}", state.pop(f"convolutions.{k}.weight").permute(2, 1, 0)
        yield f"{ours}.kernel_biases.{k}", state.pop(f"convolutions.{k}.bias")
    for k in range(characters.num_highways):
        # sigmoid(-z) = 1 - sigmoid(z): turns the kept fraction into the transformed one.
        for part in ("weight", "bias"):
            transform, kept = state.pop(f"highways._layers.{k}.{part}").chunk(2)
            yield f"{ours}.highways.{k}.transform_{part}", transform.t()
            yield f"{ours}.highways.{k}.carry_{part}", -kept.t()
    yield f"{ours}.projection_weight", state.pop("projection.weight").T
    yield f"{ours}.projection_bias", state.pop("projection.bias")


def _lstm_parameters(state: dict[str, Tensor], shape: BiLMShape) -> Iterator[tuple[str, Tensor]]:
    D = shape.cell_dim
    for layer in range(shape.num_layers):

        def both(name: str, layer: int = layer) -> Tensor:
            return torch.stack([state.pop(f"{way}_layer_{layer}.{name}") for way in ("forward", "backward")])

        bias = both("state_linearity.bias").clone()
        bias[:, D : 2 * D] -= 1.0
        yield f"bilm.layers.{layer}.input_weight", _reorder_gates(both("input_linearity.weight"), D).transpose(1, 2)
        yield f"bilm.layers.{layer}.recurrent_weight", _reorder_gates(both("state_linearity.weight"), D).transpose(1, 2)
        yield f"bilm.layers.{layer}.bias", _reorder_gates(bias, D)
        yield f"bilm.layers.{layer}.projection", both("state_projection.weight").transpose(1, 2)


def _reorder_gates(rows: Tensor, cell_dim: int) -> Tensor:
    """Return the gate rows i, f, j, o (second axis, 4D) reordered to i, j, f, o."""
    i, f, j, o = rows.split(cell_dim, dim=1)  # type: ignore[no-untyped-call]
    return torch.cat([i, j, f, o], dim=1)
