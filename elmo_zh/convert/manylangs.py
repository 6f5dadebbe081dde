"""Models of ELMoForManyLangs: word embeddings and a CNN over Unicode characters, in two PyTorch state dicts.

Differences from the published layout, according to its own code: the order of the gates is i, f, j, o, and the forget
gate's 1 is in the bias; a highway gate is the fraction of the input that is kept, not the fraction that is transformed;
its marks for the beginning and the end of a word are swapped (its loader looks up `<eow>` for the beginning), also
during training, so all released models need the swap; a word's embedding precedes the CNN's output; there is always a
projection.
"""

import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_zh.bundle.options_json import load_options, parse_shape
from elmo_zh.bundle.weights import num_parameters, parameter_shapes
from elmo_zh.bundle.write import BundleSource
from elmo_zh.convert.published import KnownText
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import BundleError
from elmo_zh.language import _
from elmo_zh.reader.lstm import Floats
from elmo_zh.reader.shape import BiLMShape, CharacterShape
from elmo_zh.reader.weights import ModelWeights
from elmo_zh.run.files import file_digest
from elmo_zh.vocabulary.lexicon import Alphabet
from elmo_zh.vocabulary.spelling import SpellingModel
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

ENCODER, TOKEN_EMBEDDER = "encoder.pkl", "token_embedder.pkl"
# Their names for the first three entries of our vocabulary.
_THEIR_SPECIALS = ("<bos>", "<eos>", "<oov>")
_MOST_DIGITS = 9
_CHARACTER_MARKS = (*_THEIR_SPECIALS, "<bow>", "<eow>", "<pad>")
# Settings that have the published names.
_LSTM_KEYS = ("dim", "projection_dim", "n_layers", "cell_clip", "proj_clip")
_CNN_KEYS = ("filters", "n_highway", "max_characters_per_token", "activation")


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


def read_manylangs(folder: Path, options: Path | None, text: KnownText, *, swapped_marks: bool) -> BundleSource:
    """Read a model of ELMoForManyLangs; without `options`, config.json names the configuration."""
    config_path = options or _find_config(folder)
    config = _RELEASED_CONFIG if config_path is None else load_options(config_path)
    config_path = config_path or folder / "config.json"
    token_embedder = _load_state_dict(folder / TOKEN_EMBEDDER)
    encoder = _load_state_dict(folder / ENCODER)
    has_words = "word_emb_layer.embedding.weight" in token_embedder
    dictionaries = _Dictionaries(
        characters=_load_dictionary(folder / "char.dic", _CHARACTER_MARKS),
        words=_load_dictionary(folder / "word.dic", _THEIR_SPECIALS) if has_words else None,
    )
    shape = _parse_shape(config, config_path, dictionaries)
    weights = _weights(shape, token_embedder, encoder, dictionaries, folder)
    used = [config_path, folder / ENCODER, folder / TOKEN_EMBEDDER, folder / "char.dic"]
    used += [folder / "word.dic"] if has_words else []
    return BundleSource(
        weights=weights,
        vocabulary=dictionaries.vocabulary(),
        spelling=SpellingModel.build({}),
        user_dictionary=text.user_dictionary,
        text=text.config,
        training_options={},
        carry_state=True,
        training={},
        origin={"program": "ELMoForManyLangs", "files": {path.name: file_digest(path) for path in used}},
        alphabet=dictionaries.alphabet(swapped_marks=swapped_marks),
    )


def _find_config(folder: Path) -> Path | None:
    """Return the file in the folder that config.json names, or None for the configuration of the released models."""
    name = Path(str(load_options(folder / "config.json").get("config_path"))).name
    for path in (folder / name, folder / "configs" / name):
        if path.is_file():
            return path
    if name in _RELEASED_NAMES:
        return None
    message = _("{path} does not contain the configuration file {name}. Specify that file: --options FILE")
    raise BundleError(message.format(path=folder, name=name))


def _load_state_dict(path: Path) -> dict[str, Tensor]:
    try:
        _refuse_compressed(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that are refused anyway
            state = torch.load(path, map_location="cpu", weights_only=True)
    except (MemoryError, BundleError):
        raise
    except Exception as error:  # a malicious file can make torch's restricted unpickler fail with any exception
        raise _unusable(path, f"{type(error).__name__}: {str(error).splitlines()[:1]!s:.200}") from None
    if not isinstance(state, dict) or not all(_is_plain(name, value) for name, value in state.items()):
        raise _unusable(path, "it contains something other than named weights")
    stored = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in state.values()}
    claimed = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    if claimed > sum(stored.values()):
        raise _unusable(path, f"it claims {claimed:,} bytes of weights but has fewer")
    return dict(state)


def _unusable(path: Path, error: str) -> BundleError:
    message = _("{path} is damaged or unsafe ({error}), so it is not used. Download or copy the model again.")
    return BundleError(message.format(path=path, error=error))


def _is_plain(name: Any, value: Any) -> bool:
    is_dense = isinstance(value, Tensor) and value.layout == torch.strided and value.device.type == "cpu"
    return isinstance(name, str) and is_dense and value.is_floating_point()


def _refuse_compressed(path: Path) -> None:
    """Raise BundleError for a state dict with compressed entries, since PyTorch never compresses them."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise _unusable(path, "its weights are compressed, which PyTorch never does")


def _load_dictionary(path: Path, needed: tuple[str, ...]) -> dict[str, int]:
    """Read lines of word TAB number; a line without a word stands for the ideographic space, which was stripped."""
    if not path.is_file():
        raise BundleError(_("{path} is missing. Check the path.").format(path=path))
    numbers: dict[str, int] = {}
    for line_number, line in enumerate(iter_lines(path), start=1):
        word, __, number = line.strip().rpartition("\t")
        if not number.isdecimal() or len(number) > _MOST_DIGITS:
            raise _unusable(path, f"line {line_number} is not a word, a tab and a number: {line!r:.100}")
        numbers[word or "\u3000"] = int(number)
    if missing := [name for name in needed if name not in numbers]:
        raise _unusable(path, f"it lacks {', '.join(missing)}")
    if len(set(numbers.values())) != len(numbers):
        raise _unusable(path, "two entries have the same number")
    return numbers


@dataclass(frozen=True, kw_only=True)
class _Dictionaries:
    """The rows of characters, markers and words in their tables; `words` is None without word embeddings."""

    characters: Mapping[str, int]
    words: Mapping[str, int] | None

    def _character_order(self) -> list[str]:
        """Return characters and markers in our order, which is theirs with the padding moved to the end."""
        theirs = self.characters
        return [*sorted((name for name in theirs if name != "<pad>"), key=theirs.__getitem__), "<pad>"]

    def _plain_words(self) -> list[str]:
        theirs, marks = self.words or {}, (*_THEIR_SPECIALS, "<pad>", *SPECIALS)
        return [word for word in sorted(theirs, key=theirs.__getitem__) if word not in marks]

    def vocabulary(self) -> Vocabulary | None:
        """Return our vocabulary: our special tokens, then their words."""
        return Vocabulary([*SPECIALS, *self._plain_words()]) if self.words else None

    def alphabet(self, *, swapped_marks: bool) -> Alphabet:
        """Return the alphabet that gives characters and markers our ids."""
        ours = {name: number for number, name in enumerate(self._character_order())}
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

    def reorder_characters(self, table: Tensor) -> Tensor:
        return _take_rows(table, self.characters, self._character_order(), "char.dic")

    def reorder_words(self, table: Tensor) -> Tensor:
        return _take_rows(table, self.words or {}, [*_THEIR_SPECIALS, *self._plain_words()], "word.dic")


def _take_rows(table: Tensor, numbers: Mapping[str, int], names: list[str], file: str) -> Tensor:
    if sorted(numbers.values()) != list(range(len(table))):
        raise ValueError(f"{file} does not number the {len(table)} rows of its embedding")
    return table[[numbers[name] for name in names]]


def _parse_shape(config: Mapping[str, Any], path: Path, dictionaries: _Dictionaries) -> BiLMShape:
    try:
        encoder, tokens = config["encoder"], config["token_embedder"]
        if encoder["name"].lower() != "elmo" or tokens["name"].lower() != "cnn":
            raise ValueError(f"encoder {encoder['name']} with token_embedder {tokens['name']}; expected elmo with cnn")
        published = {
            "lstm": {"use_skip_connections": True, **{name: encoder[name] for name in _LSTM_KEYS}},
            "char_cnn": {
                "unicode_characters": True,
                "n_characters": len(dictionaries.characters) + 1,
                "embedding": {"dim": tokens["char_dim"]},
                "word_embedding": {"dim": tokens["word_dim"] if dictionaries.words else 0},
                **{name: tokens[name] for name in _CNN_KEYS},
            },
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = _("{path} is not a usable configuration ({error}). Give another one: --options FILE")
        raise BundleError(message.format(path=path, error=repr(error))) from None
    vocabulary = dictionaries.vocabulary()
    return parse_shape(published, path, len(vocabulary) if vocabulary else None)


def _weights(
    shape: BiLMShape,
    token_embedder: dict[str, Tensor],
    encoder: dict[str, Tensor],
    dictionaries: _Dictionaries,
    folder: Path,
) -> ModelWeights:
    """Return all weights; the files have to contain every parameter and nothing unused."""
    assert shape.characters is not None
    held = sum(tensor.numel() for state in (token_embedder, encoder) for tensor in state.values())
    try:
        if num_parameters(shape) > held:
            raise ValueError(f"{num_parameters(shape):,} numbers are described, but the files hold {held:,}")
        parameters = dict(_token_parameters(token_embedder, shape.characters, dictionaries))
        parameters |= _lstm_parameters(encoder, shape)
        if left_over := [*token_embedder, *encoder]:
            raise ValueError(f"unknown weights: {', '.join(left_over)}")
        arrays = {name: _checked(name, parameters[name], sizes) for name, sizes in parameter_shapes(shape).items()}
    except (KeyError, RuntimeError, ValueError, IndexError) as error:
        message = _(
            "{path}: the weights do not match the model's configuration ({error}). Specify another configuration"
            " (--options FILE), or download the model again."
        )
        raise BundleError(message.format(path=folder, error=error)) from None
    return ModelWeights(shape=shape, arrays=arrays)


def _checked(name: str, tensor: Tensor, expected: tuple[int, ...]) -> Floats:
    """Return a tensor as float32; it has to be finite and to have the right shape."""
    value = tensor.float()
    if tuple(value.shape) != expected or not bool(torch.isfinite(value).all()):
        raise ValueError(f"{name} has shape {tuple(value.shape)}; expected finite numbers of shape {expected}")
    return value.contiguous().numpy()


def _token_parameters(
    state: dict[str, Tensor], shape: CharacterShape, dictionaries: _Dictionaries
) -> Iterator[tuple[str, Tensor]]:
    N, ours = shape.num_filters, "bilm.character_cnn"
    yield f"{ours}.embedding", dictionaries.reorder_characters(state.pop("char_emb_layer.embedding.weight"))
    if shape.word_dim:
        yield f"{ours}.word_embedding", dictionaries.reorder_words(state.pop("word_emb_layer.embedding.weight"))
    for k in range(len(shape.filters)):
        yield f"{ours}.kernels.{k}", state.pop(f"convolutions.{k}.weight").permute(2, 1, 0)
        yield f"{ours}.kernel_biases.{k}", state.pop(f"convolutions.{k}.bias")
    for k in range(shape.num_highways):
        weight, bias = state.pop(f"highways._layers.{k}.weight"), state.pop(f"highways._layers.{k}.bias")
        # sigmoid(-z) = 1 - sigmoid(z): turns the kept fraction into the transformed one.
        yield f"{ours}.highways.{k}.transform_weight", weight[:N].T
        yield f"{ours}.highways.{k}.transform_bias", bias[:N]
        yield f"{ours}.highways.{k}.carry_weight", -weight[N:].T
        yield f"{ours}.highways.{k}.carry_bias", -bias[N:]
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
