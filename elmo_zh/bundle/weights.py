"""Read and write weights.hdf5 through one table of names; also read safetensors files."""

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from elmo_zh.errors import BundleError
from elmo_zh.hdf5.create import create_hdf5
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.model.bilm import BiLM, BiLMShape
from elmo_zh.model.character_cnn import CharacterShape
from elmo_zh.model.softmax import Softmax
from elmo_zh.run.disk_space import system_error_number


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One dataset, and the parameters stacked in it row by row; `direction` is None if they serve both."""

    dataset: str
    shape: tuple[int, ...]
    parameters: tuple[str, ...]
    direction: int | None = None


def weight_table(shape: BiLMShape, *, has_softmax: bool) -> list[Entry]:
    """Return every dataset of a biLM and of its softmax, if it has one.

    The forget gate's added 1 is in neither the file nor our parameters: every reader adds it. There is no W_P_0 if
    the projection is as wide as the cell, and no CNN_proj if it is as wide as all filters together. `word_embed` is
    ours, for models of ELMoForManyLangs.
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


def named_parameters(bilm: BiLM, softmax: Softmax | None) -> dict[str, Tensor]:
    """Return all weights by name; a softmax that shares the token table is listed under its own name too."""
    tensors = {f"bilm.{name}": value.detach() for name, value in bilm.named_parameters()}
    if softmax is not None:
        tensors |= {"softmax.weight": softmax.weight.detach(), "softmax.bias": softmax.bias.detach()}
    return tensors


def published_arrays(bilm: BiLM, softmax: Softmax | None, dtype: str = "float32") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the name and value of each dataset in the published layout, with a dtype from `choices.WEIGHT_DTYPES`."""
    tensors = named_parameters(bilm, softmax)
    table = weight_table(bilm.shape, has_softmax=softmax is not None)
    left_over = set(tensors) - {name for entry in table for name in entry.parameters}
    if left_over:
        raise BundleError(f"The published layout has no dataset for {', '.join(sorted(left_over))}.")
    for entry in table:
        parts = [_part(tensors[name], entry.direction) for name in entry.parameters]
        array = torch.cat(parts).float().cpu().numpy()
        assert array.size == math.prod(entry.shape), entry
        yield entry.dataset, array.reshape(entry.shape).astype(dtype, copy=False)


def save_weights(path: Path, bilm: BiLM, softmax: Softmax | None, dtype: str = "float32") -> None:
    """Write weights.hdf5 in the published layout; in float16, a tied softmax is another name for the token table."""
    with create_hdf5(path) as file:
        for name, array in published_arrays(bilm, softmax, dtype):
            if dtype == "float16" and name == "softmax/W" and is_tied(bilm, softmax):
                file[name] = file["embedding"]
            else:
                file.create_dataset(name, data=array)


def is_tied(bilm: BiLM, softmax: Softmax | None) -> bool:
    """Return whether the softmax equals the token table, as a tied softmax does."""
    table = None if bilm.shape.characters else bilm.token_table.weight
    return table is not None and softmax is not None and torch.equal(table, softmax.weight)


def num_parameters(shape: BiLMShape, *, has_softmax: bool = False) -> int:
    """Return how many numbers the published layout holds, counting a tied softmax separately from the token table."""
    return sum(math.prod(entry.shape) for entry in weight_table(shape, has_softmax=has_softmax))


def count_parameters(bilm: BiLM, softmax: Softmax | None) -> int:
    """Return the number of parameters of a model; numbers that a tied softmax shares are counted once."""
    shared = softmax.weight.numel() if softmax is not None and is_tied(bilm, softmax) else 0
    return num_parameters(bilm.shape, has_softmax=softmax is not None) - shared


@torch.no_grad()
def round_to_float16(bilm: BiLM, softmax: Softmax | None) -> None:
    """Round all weights to float16 in place; they remain float32 tensors."""
    for name, tensor in named_parameters(bilm, softmax).items():
        rounded = tensor.half().float()
        if not torch.isfinite(rounded).all():
            raise BundleError(
                f"{name} contains numbers that float16 cannot represent (NaN, or beyond ±65,504). Use --dtype float32."
            )
        tensor.copy_(rounded)


def _part(tensor: Tensor, direction: int | None) -> Tensor:
    return tensor if direction is None else tensor[direction]


def load_model(
    path: Path, shape: BiLMShape, token_embeddings: Path | None = None, *, with_softmax: bool = True
) -> tuple[BiLM, Softmax | None]:
    """Build a model from a weights file; `token_embeddings` is the file with `embedding` if that is a separate file."""
    file = ForeignFile.open(path)
    has_softmax = with_softmax and file.has_group("softmax")
    table = weight_table(shape, has_softmax=has_softmax)
    sources = dict.fromkeys((entry.dataset for entry in table), file)
    if token_embeddings is not None:
        sources["embedding"] = ForeignFile.open(token_embeddings)
    _refuse_unknown_datasets(file, sources)
    shapes: dict[ForeignFile, dict[str, tuple[int, ...]]] = {}
    for entry in table:
        shapes.setdefault(sources[entry.dataset], {})[entry.dataset] = entry.shape
    for source, own in shapes.items():
        source.check_arrays(own)
    bilm = BiLM(shape)
    softmax = Softmax(shape.num_tokens, shape.projection_dim) if has_softmax else None
    targets, entries = named_parameters(bilm, softmax), {entry.dataset: entry for entry in table}
    for source, own in shapes.items():
        for name, array in source.read_arrays(own):
            _fill(targets, entries[name], array)
    return bilm, softmax


def _fill(targets: Mapping[str, Tensor], entry: Entry, array: NDArray[Any]) -> None:
    values, start = torch.from_numpy(array), 0
    for name in entry.parameters:
        target = _part(targets[name], entry.direction)
        end = start + len(target) if len(entry.parameters) > 1 else len(values)
        target.copy_(values[start:end].reshape(target.shape))
        start = end


def _refuse_unknown_datasets(file: ForeignFile, known: Iterable[str]) -> None:
    known = set(known)
    for name in sorted(file.names()):
        is_ours = name.startswith(("RNN_", "CNN")) or name in ("char_embed", "word_embed", "embedding")
        if is_ours and name not in known:
            raise BundleError(
                f"{file.path}: {name} is not in the model that options.json describes. The two files belong to"
                " different models, or the options were changed."
            )


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file; raise OSError or SafetensorError if it is unreadable or damaged."""
    try:
        return load_file(path)
    except RuntimeError as error:
        # torch maps the file, and reports errors of the disk as RuntimeError.
        number = system_error_number(error)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from None


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors to a safetensors file that the same people may read as any other new file."""
    path.touch()
    mode = path.stat().st_mode
    save_file(dict(tensors), path)  # only the owner may read what safetensors creates
    path.chmod(mode)
