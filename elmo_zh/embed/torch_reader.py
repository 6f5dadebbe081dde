"""Read sentences with PyTorch: in bfloat16 or int8 on a CPU, or in any precision on a GPU."""

from collections.abc import Sequence

import torch
from torch.nn import functional

from elmo_zh.embed.sentence_vectors import BatchReader
from elmo_zh.model.batches import pad_sentences
from elmo_zh.model.bilm import BiLM
from elmo_zh.model.bilm import State as TorchState
from elmo_zh.model.kernels.cells import LSTMState
from elmo_zh.model.kernels.execution import with_half_of_the_threads
from elmo_zh.model.precision import PRECISIONS, Precision
from elmo_zh.model.sentence_reader import SentenceReader
from elmo_zh.reader.batches import Ids, pack_both_ways
from elmo_zh.reader.bilm import LayerState, State
from elmo_zh.reader.lstm import Floats


def build_torch_reader(bilm: BiLM, precision: str, device: str) -> BatchReader:
    """Return a function that runs the LSTM layers on a batch of sentences in the fastest way on the device."""
    if device != "cpu":
        return build_gpu_reader(bilm, PRECISIONS[precision], torch.device(device))
    reader = SentenceReader(bilm, PRECISIONS[precision])

    @with_half_of_the_threads()
    def read(word_vectors: Floats, sentences: Sequence[Ids], state: State) -> tuple[Floats, State]:
        before = _to_torch(state, torch.device("cpu"))
        layers, after = reader.read(torch.from_numpy(word_vectors), pack_both_ways(sentences), before)
        return layers.numpy(), _to_numpy(after)

    return read


def build_gpu_reader(bilm: BiLM, precision: Precision, device: torch.device) -> BatchReader:
    """Return a function that runs the LSTM layers on padded batches on a GPU, to which the biLM is moved."""
    bilm.to(device)

    @torch.no_grad()
    def read(word_vectors: Floats, sentences: Sequence[Ids], state: State) -> tuple[Floats, State]:
        numbers, mask = (part.pin_memory().to(device, non_blocking=True) for part in pad_sentences(sentences))
        token_vectors = functional.embedding(numbers, torch.from_numpy(word_vectors).to(device))
        layers, after = bilm.read_sentences(token_vectors, mask, _to_torch(state, device), precision)
        words = mask.clone()
        words[:, 0] = False
        words[torch.arange(len(words), device=device), mask.sum(dim=1) - 1] = False
        chosen = layers[:, words]
        there = torch.empty(chosen.shape, dtype=chosen.dtype, pin_memory=chosen.is_cuda)
        return there.copy_(chosen).numpy(), _to_numpy(after)

    return read


def _to_torch(state: State, device: torch.device) -> TorchState:
    return [LSTMState(*(torch.from_numpy(part).to(device) for part in layer)) for layer in state]


def _to_numpy(state: TorchState) -> State:
    return [LayerState(layer.output.cpu().numpy(), layer.cell.cpu().numpy()) for layer in state]
