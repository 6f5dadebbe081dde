"""Read and write weights.hdf5 and safetensors files; compute, read and write warm states."""

import math
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.errors import BundleError
from elmo_zh.hdf5 import create_hdf5
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.language import _
from elmo_zh.reader.bilm import BiLMShape, CharacterShape, LayerState, State
from elmo_zh.reader.weights import ModelWeights
from elmo_zh.run.files import system_error_number
from elmo_zh.vocabulary.lexicon import Lexicon

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A dataset, and the parameters stacked along its first axis; `direction` is None if they serve both directions."""

    dataset: str
    shape: tuple[int, ...]
    parameters: tuple[str, ...]
    direction: int | None = None


def weight_table(shape: BiLMShape, *, has_softmax: bool) -> list[Entry]:
    """Return every dataset of a biLM and of its softmax, if it has one.

    The forget gate's added 1 is in neither the file nor our parameters: every reader adds it. There is no W_P_0 if
    the projection is as wide as the cell, and no CNN_proj if it is as wide as all filters together. `word_embed` is
    ours, for models of ELMoForManyLangs; there is always a CNN_proj with it.
    """
    V, P = shape.num_tokens, shape.projection_dim
    table = _lstm_table(shape)
    if shape.characters is None:
        table.append(Entry(dataset="embedding", shape=(V, P), parameters=("bilm.token_table.weight",)))
    else:
        table += _character_table(shape.characters, shape)
    if has_softmax:
        table.append(Entry(dataset="softmax/W", shape=(V, P), parameters=("softmax.weight",)))
        table.append(Entry(dataset="softmax/b", shape=(V,), parameters=("softmax.bias",)))
    return table


def _lstm_table(shape: BiLMShape) -> list[Entry]:
    P, D = shape.projection_dim, shape.cell_dim
    table = []
    for direction in range(2):
        for layer in range(shape.num_layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            ours = f"bilm.layers.{layer}"
            matrices = (f"{ours}.input_weight", f"{ours}.recurrent_weight")
            table.append(Entry(dataset=f"{cell}/W_0", shape=(2 * P, 4 * D), parameters=matrices, direction=direction))
            table.append(Entry(dataset=f"{cell}/B", shape=(4 * D,), parameters=(f"{ours}.bias",), direction=direction))
            if P < D:
                projection = (f"{ours}.projection",)
                table.append(Entry(dataset=f"{cell}/W_P_0", shape=(D, P), parameters=projection, direction=direction))
    return table


def _character_table(shape: CharacterShape, bilm_shape: BiLMShape) -> list[Entry]:
    N, c, P = shape.num_filters, shape.embedding_dim, bilm_shape.projection_dim
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {"char_embed": ("embedding", (shape.num_characters, c))}
    for index, (width, count) in enumerate(shape.filters):
        shapes[f"CNN/W_cnn_{index}"] = (f"kernels.{index}", (1, width, c, count))
        shapes[f"CNN/b_cnn_{index}"] = (f"kernel_biases.{index}", (count,))
    for index in range(shape.num_highways):
        for part in ("carry", "transform"):
            shapes[f"CNN_high_{index}/W_{part}"] = (f"highways.{index}.{part}_weight", (N, N))
            shapes[f"CNN_high_{index}/b_{part}"] = (f"highways.{index}.{part}_bias", (N,))
    if shape.word_dim:
        shapes["word_embed"] = ("word_embedding", (bilm_shape.num_tokens, shape.word_dim))
    if shape.has_projection(P):
        shapes["CNN_proj/W_proj"] = ("projection_weight", (shape.word_dim + N, P))
        shapes["CNN_proj/b_proj"] = ("projection_bias", (P,))
    return [
        Entry(dataset=dataset, shape=sizes, parameters=(f"bilm.character_cnn.{name}",))
        for dataset, (name, sizes) in shapes.items()
    ]


def published_arrays(weights: ModelWeights, dtype: str = "float32") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the name and value of each dataset in the published layout, with a dtype from `choices.WEIGHT_DTYPES`."""
    table = weight_table(weights.shape, has_softmax=weights.has_softmax)
    for entry in table:
        array = np.concatenate([_part(weights.arrays[name], entry.direction) for name in entry.parameters])
        assert array.size == math.prod(entry.shape), entry
        yield entry.dataset, array.reshape(entry.shape).astype(dtype, copy=False)


def save_weights(path: Path, weights: ModelWeights, dtype: str = "float32") -> None:
    """Write a weights file in the published layout; in float16, a tied softmax is another name for the token table."""
    with create_hdf5(path) as file:
        for name, array in published_arrays(weights, dtype):
            if dtype == "float16" and name == "softmax/W" and weights.is_tied:
                file[name] = file["embedding"]
            else:
                file.create_dataset(name, data=array)


def num_parameters(shape: BiLMShape, *, has_softmax: bool = False) -> int:
    """Return how many numbers the published layout holds, counting a tied softmax separately from the token table."""
    return sum(math.prod(entry.shape) for entry in weight_table(shape, has_softmax=has_softmax))


def count_parameters(weights: ModelWeights) -> int:
    """Return the number of parameters of a model; numbers that a tied softmax shares are counted once."""
    shared = weights.arrays["softmax.weight"].size if weights.is_tied else 0
    return num_parameters(weights.shape, has_softmax=weights.has_softmax) - shared


def rounded_to_float16(weights: ModelWeights) -> ModelWeights:
    """Return a model with its float32 weights rounded to float16 values; raise BundleError if one is too large."""
    arrays = {}
    for name, array in weights.arrays.items():
        with np.errstate(over="ignore"):
            arrays[name] = array.astype(np.float16).astype(np.float32)
        if not np.isfinite(arrays[name]).all():
            message = _("{name} contains numbers that float16 cannot represent. Use --dtype float32.")
            raise BundleError(message.format(name=name))
    return replace(weights, arrays=arrays)


def _part(array: NDArray[Any], direction: int | None) -> NDArray[Any]:
    return array if direction is None else array[direction]


def load_model(
    path: Path, shape: BiLMShape, token_embeddings: Path | None = None, *, with_softmax: bool = True
) -> ModelWeights:
    """Read a weights file, with its softmax if it has one and `with_softmax` is true.

    `token_embeddings` is the file with the dataset `embedding` if that is a separate file.

    Raises:
        BundleError: If a file is missing, damaged, or does not fit the shape.
    """
    file = ForeignFile(path)
    has_softmax = with_softmax and file.has_group("softmax")
    table = weight_table(shape, has_softmax=has_softmax)
    files = dict.fromkeys((entry.dataset for entry in table), file)
    if token_embeddings is not None:
        files["embedding"] = ForeignFile(token_embeddings)
    _refuse_unknown_datasets(file, files)
    for entry in table:  # before memory is taken
        files[entry.dataset].require_array(entry.dataset, entry.shape)
    arrays: dict[str, NDArray[np.float32]] = {}
    sizes = parameter_shapes(shape, has_softmax=has_softmax)
    for entry in table:
        parts = np.split(files[entry.dataset].read_array(entry.dataset, entry.shape), len(entry.parameters))
        for name, values in zip(entry.parameters, parts, strict=True):
            if entry.direction is None:
                arrays[name] = values.reshape(sizes[name])
                continue
            if name not in arrays:
                arrays[name] = np.empty(sizes[name], np.float32)
            arrays[name][entry.direction] = values.reshape(sizes[name][1:])
    return ModelWeights(shape=shape, arrays=arrays)


def parameter_shapes(shape: BiLMShape, *, has_softmax: bool = False) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter by name; in LSTM layers the first axis is the direction."""
    shapes: dict[str, tuple[int, ...]] = {}
    for entry in weight_table(shape, has_softmax=has_softmax):
        rows, *others = entry.shape
        if entry.dataset.startswith("CNN/W_cnn"):
            rows, *others = others  # the file has a leading axis of 1
        for name in entry.parameters:
            sizes = (rows // len(entry.parameters), *others)
            shapes[name] = sizes if entry.direction is None else (2, *sizes)
    return shapes


def _refuse_unknown_datasets(file: ForeignFile, known: Container[str]) -> None:
    for name in sorted(file.names()):
        is_ours = name.startswith(("RNN_", "CNN")) or name in ("char_embed", "word_embed", "embedding")
        if is_ours and name not in known:
            raise BundleError.damaged(file.path, f"{name} is not in the model that options.json describes")


def load_tensors(path: Path) -> "dict[str, Tensor]":
    """Return the tensors of a safetensors file; raise OSError or SafetensorError if it is unreadable or damaged."""
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except RuntimeError as error:
        # torch maps the file, and reports errors of the disk as RuntimeError.
        number = system_error_number(error)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from None


def save_tensors(tensors: "Mapping[str, Tensor]", path: Path) -> None:
    """Write tensors to a safetensors file with the permissions of any other new file."""
    from safetensors.torch import save_file

    path.touch()
    mode = path.stat().st_mode
    save_file(dict(tensors), path)  # only the owner may read what safetensors creates
    path.chmod(mode)


# The warm state, from which a model trained with carried state starts every sentence, so their order does not matter.
#
# Such a model has learned to start a sentence from the final state of the previous one, never from zeros. The mean
# state at the ends of many sentences is such a start, and it is the same for every sentence. In warm_state.hdf5 the
# datasets are `output` (L, 2, P) and `cell` (L, 2, D), float32; the second axis is the direction, forward LM first.

# Streams computed together; each carries its state from sentence to sentence.
_STREAMS = 32
MOST_TOKENS = 100_000
# The first sentences of a stream start from zeros, which the warm state should not depend on.
_UNCOUNTED_SENTENCES = 2


def warm_up(weights: ModelWeights, lexicon: Lexicon, sentences: Iterable[NDArray[Any]]) -> tuple[State, int]:
    """Return the mean state at the ends of sentences of input ids, and the number of states averaged.

    After the sentence that reaches `MOST_TOKENS` ids, no more are read.
    """
    chosen, num_tokens = [], 0
    for sentence in sentences:
        chosen.append(sentence)
        if (num_tokens := num_tokens + len(sentence)) >= MOST_TOKENS:
            break
    # Consecutive sentences of the text stay consecutive in a stream.
    length = -(-len(chosen) // _STREAMS)
    streams = [chosen[start : start + length] for start in range(0, len(chosen), length)]
    uncounted = min(_UNCOUNTED_SENTENCES, length - 1)
    state = weights.reader.zero_state(len(streams))
    sums = [[np.zeros(part.shape[::2]) for part in layer] for layer in state]
    count = 0
    for turn in range(length):
        # All streams have the same length except the last, which is shorter.
        reading = [stream[turn] for stream in streams if turn < len(stream)]
        state = _read_on(
            weights, lexicon, reading, [LayerState(*(part[:, : len(reading)] for part in layer)) for layer in state]
        )
        if turn >= uncounted:
            for layer_sums, layer in zip(sums, state, strict=True):
                for total, part in zip(layer_sums, layer, strict=True):
                    total += part.sum(axis=1, dtype=np.float64)
            count += len(reading)
    means = [[(total / count).astype(np.float32)[:, None] for total in layer_sums] for layer_sums in sums]
    return [LayerState(*layer) for layer in means], count


def _read_on(weights: ModelWeights, lexicon: Lexicon, sentences: Sequence[NDArray[Any]], state: State) -> State:
    """Return each stream's state after the last word of its sentence, given the state before that sentence."""
    order = sorted(range(len(sentences)), key=lambda stream: -len(sentences[stream]))
    vectors, numbered = weights.number_words(lexicon, [sentences[stream] for stream in order])
    before = [LayerState(*(part[:, order] for part in layer)) for layer in state]
    _, after = weights.reader.top_outputs(vectors, numbered, before)
    back = np.argsort(order)
    return [LayerState(*(part[:, back] for part in layer)) for layer in after]


def save_warm_state(path: Path, state: State) -> None:
    """Write a warm state of batch size 1 to a file."""
    with create_hdf5(path) as file:
        file.create_dataset("output", data=np.stack([layer.output[:, 0] for layer in state]))
        file.create_dataset("cell", data=np.stack([layer.cell[:, 0] for layer in state]))


def load_warm_state(path: Path, shape: BiLMShape) -> State:
    """Load a warm state; raise BundleError if the file is damaged or does not fit the shape."""
    L, P, D = shape.num_layers, shape.projection_dim, shape.cell_dim
    file = ForeignFile(path)
    outputs, cells = file.read_array("output", (L, 2, P)), file.read_array("cell", (L, 2, D))
    return [LayerState(output[:, None], cell[:, None]) for output, cell in zip(outputs, cells, strict=True)]
