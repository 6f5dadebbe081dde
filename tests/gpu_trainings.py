"""Whole trainings on a GPU, against a processor and themselves; needs no pytest, since `benchmarks/gpu.py` runs it too.

A process has to have CUBLAS_WORKSPACE_CONFIG before its first product on a GPU: torch looks only once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from gpu_layers import on_gpu_path
from torch import Tensor

from elmo_zh.config import TrainConfig
from elmo_zh.embed import sentence_vectors
from elmo_zh.embed.sentence_vectors import SentenceVectors
from elmo_zh.id_store.encoded_sentences import EncodedSentences, HeldoutSentences, IdStore
from elmo_zh.model.bilm import BiLM, BiLMShape
from elmo_zh.model.kernels import gpu_recurrence
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.model.precision import FLOAT32, Precision
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.training.checkpoint import CheckpointFolder
from elmo_zh.training.computation import choose_computation
from elmo_zh.training.initial_weights import initialise_model
from elmo_zh.training.metrics import MetricsFile
from elmo_zh.training.trainer import Trainer, TrainerSetup
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

# Seven equally likely sentences. The first word determines the rest forwards, the last word backwards.
SENTENCES = [[3 + k, 10 + k, 17 + k, 24, 25 + k] for k in range(7)]
ROWS = 32
VOCABULARY = Vocabulary([*SPECIALS, *(chr(ord("一") + row) for row in range(ROWS - 3))])
SHAPE = BiLMShape(
    num_tokens=ROWS, cell_dim=23, projection_dim=13, num_layers=2, cell_clip=3.0, projection_clip=3.0,
    skip_connections=True,
)  # fmt: skip
SHORT = replace(
    TrainConfig(), batch_size=7, unroll_steps=11, num_negatives=13, max_tokens=1_000, epochs=0.0, precision="float32",
    deterministic=True, log_every_steps=1,
)  # fmt: skip


def build_store(num_slots: int | None = None) -> IdStore:
    ids = np.array([word for sentence in SENTENCES for word in sentence], np.uint16)
    offsets = np.arange(len(SENTENCES) + 1, dtype=np.uint64) * 5
    nothing = HeldoutSentences.measured(
        np.zeros(0, np.uint16), np.zeros(1, np.uint64), np.zeros(0, np.uint32), np.zeros(0, np.float64)
    )
    return IdStore(EncodedSentences.in_memory(ids, offsets), nothing, Lexicon(VOCABULARY, num_slots))


def build_trainer(
    model: LanguageModel, folder: Path, device: torch.device, config: TrainConfig, store: IdStore | None = None
) -> Trainer:
    setup = TrainerSetup(
        model=model, store=store or build_store(), vocabulary_digest="digest", config=config,
        checkpoints=CheckpointFolder(folder / "c", config.keep_checkpoints), metrics=MetricsFile(folder / "m.jsonl"),
        device=device, computation=choose_computation(config, device, {}), reporter=SilentReporter(),
        initialise=lambda new: initialise_model(new, 1, None),
    )  # fmt: skip
    return Trainer(setup)


def train_some_steps(folder: Path, device: torch.device, config: TrainConfig) -> tuple[list[float], dict[str, Tensor]]:
    """Return the losses and the weights after a short training."""
    model = LanguageModel.build(SHAPE, tie_softmax=False)
    build_trainer(model, folder, device, config).train()
    losses = [line["train_loss"] for line in MetricsFile(folder / "m.jsonl").lines() if "train_loss" in line]
    return losses, {name: value.cpu().clone() for name, value in model.named_tensors().items()}


@contextmanager
def settings_put_back() -> Iterator[None]:
    """Undo what training on a GPU sets in torch."""
    allow_tf32 = torch.backends.cudnn.allow_tf32
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = allow_tf32
        torch.use_deterministic_algorithms(False)


def check_training_repeats(folder: Path, device: str, use_graphs: bool, precision: str, softmax: str) -> None:
    """Deterministic training gives the same losses and weights twice."""
    config = replace(SHORT, precision=precision, softmax=softmax)
    with settings_put_back(), on_gpu_path(device), patch.object(gpu_recurrence, "_USE_GRAPHS", use_graphs):
        first, second = (train_some_steps(folder / name, torch.device(device), config) for name in ("first", "second"))
    assert first[0] == second[0]
    assert all(torch.equal(value, second[1][name]) for name, value in first[1].items())


def check_trains_as_a_processor(folder: Path, device: str, changes: dict[str, object]) -> None:
    """The losses are those of a processor; without dropout, because each device draws its own masks."""
    config = replace(replace(SHORT, dropout=0.0), **changes)  # type: ignore[arg-type]
    with settings_put_back():
        expected, _ = train_some_steps(folder / "expected", torch.device("cpu"), config)
        with on_gpu_path(device):
            found, _ = train_some_steps(folder / "found", torch.device(device), config)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def check_embeds_as_a_processor(device: str) -> None:
    """Vectors of sentences of several lengths, in several batches; on a processor through the GPU's code."""
    model, lexicon = LanguageModel.build(SHAPE, tie_softmax=False), Lexicon(VOCABULARY, None)
    model.initialise(1)
    words = VOCABULARY.tokens[len(SPECIALS) :]
    sentences = [words[start : start + length] for start, length in ((0, 3), (5, 11), (2, 1), (9, 7), (1, 0), (4, 7))]

    def embed(where: str) -> list[np.ndarray]:
        vectors = SentenceVectors(model.bilm, lexicon, torch.device(where), FLOAT32, batch_tokens=23, unknown="unk")
        return vectors.read(sentences)

    expected = embed("cpu")
    model.to(torch.device(device))
    with on_gpu_path(device), _processor_read_as_gpu(device):
        for ours, theirs in zip(embed(device), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@contextmanager
def _processor_read_as_gpu(device: str) -> Iterator[None]:
    if device != "cpu":
        yield
        return

    def read(bilm: BiLM, precision: Precision) -> sentence_vectors.BatchReader:
        return sentence_vectors._GpuReader(bilm, precision, torch.device(device))

    with (
        patch.object(sentence_vectors, "_ProcessorReader", read),
        patch.object(torch.Tensor, "pin_memory", lambda tensor: tensor),
    ):
        yield
