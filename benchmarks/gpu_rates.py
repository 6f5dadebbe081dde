"""What `benchmarks/gpu.py` measures: products, training and embedding, with tokens a second and memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from speed import FULL, SMALL, embed_flops, training_flops_per_token

from elmo_zh.allocator import peak_memory_bytes
from elmo_zh.config import Config, load_config
from elmo_zh.embed.sentence_vectors import SentenceVectors
from elmo_zh.model.batches import pad_sentences
from elmo_zh.model.kernels import gpu_recurrence, library_lstm
from elmo_zh.model.kernels.gpu_loop import PLAIN_STEPS, kernel_fallback
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.model.precision import PRECISIONS
from elmo_zh.model.softmax import LogUniformSampler
from elmo_zh.training.computation import choose_computation
from elmo_zh.training.learner import Learner
from elmo_zh.training.optimizer import step_tokens
from elmo_zh.training.streams import PackedStreams
from elmo_zh.training.trial import SENTENCE_TOKENS, build_trial, draw_lexicon, draw_store, draw_words

ROOT = Path(__file__).parents[1]
ORIGINAL = load_config(Config(), ROOT / "configs" / "original.toml", ["vocab.size=50000"])
SIZES = {"FULL": FULL, "SMALL": SMALL, "ORIGINAL": ORIGINAL}
LARGEST_DEVIATION = 1e-4
# Without a warm-up, full learning rates may lead to infinite losses.
_LEARNING_RATE_FACTOR = 0.05


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Where and how long to measure.

    Attributes:
        device: cuda, or cpu to try the code.
        is_tiny: Use models and batches of no size, which exercise the code.
        seconds: Seconds of each measurement.
        folder: Files that one step leaves for another.
        report: Keeps figures, even if the step fails later.
    """

    device: torch.device
    is_tiny: bool
    seconds: float
    folder: Path
    report: Callable[..., None]

    def config(self, size: str, **train: Any) -> Config:
        """Return the settings of a size, with changes of section train."""
        config = SIZES[size]
        if self.is_tiny:
            config = replace(
                config,
                vocab=replace(config.vocab, size=97),
                model=replace(config.model, cell_dim=13, projection_dim=7, character_filters=((1, 3), (2, 5))),
                train=replace(config.train, batch_size=3, unroll_steps=5, num_negatives=11),
            )
        return replace(config, train=replace(config.train, **train))

    def wait(self) -> None:
        """Wait until the device has finished."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def per_second(self, work: Callable[[], object], seconds: float | None = None) -> float:
        """Return how often `work` runs per second, after two warm-up runs."""
        for _ in range(2):
            work()
        self.wait()
        done, started_at = 0, time.perf_counter()
        while done == 0 or time.perf_counter() - started_at < (seconds or self.seconds):
            work()
            done += 1
            # So that no more than some work is queued.
            if done % 8 == 0:
                self.wait()
        self.wait()
        return done / (time.perf_counter() - started_at)

    def peak_bytes(self) -> dict[str, int]:
        """Return the peak memory of the device and of the process."""
        device_bytes = torch.cuda.max_memory_allocated() if self.device.type == "cuda" else 0
        return {"device_peak_bytes": device_bytes, "process_peak_bytes": peak_memory_bytes()}

    @torch.no_grad()
    def product_tflops(self, dtype: torch.dtype) -> float:
        """Return the rate of a large square matrix product."""
        size = 32 if self.is_tiny else 8192
        left, right = (torch.randn(size, size, device=self.device).to(dtype) for _ in range(2))
        return self.per_second(lambda: left @ right, min(0.5, self.seconds)) * 2 * size**3 / 1e12


def measure_products(conditions: Conditions) -> dict[str, Any]:
    """Rates of matrix products, of copies on the device, and to and from it."""
    found: dict[str, Any] = {}
    for dtype in (torch.bfloat16, torch.float32):
        name = str(dtype).removeprefix("torch.")
        found[f"{name}_tflops"] = conditions.product_tflops(dtype)
        for size in ("FULL", "SMALL"):
            config = conditions.config(size)
            B, P, D = config.train.batch_size, config.model.projection_dim, config.model.cell_dim
            left, right = (
                torch.randn(*shape, device=conditions.device).to(dtype) for shape in ((2, B, P), (2, P, 4 * D))
            )
            rate = conditions.per_second(lambda left=left, right=right: torch.bmm(left, right), 0.2)
            found[f"{size}_step_{name}_tflops"] = rate * 2 * 2 * B * P * 4 * D / 1e12
    size = 1000 if conditions.is_tiny else 2**28
    here, there = torch.empty(size, device=conditions.device), torch.empty(size, device=conditions.device)
    found["copy_gigabytes_per_second"] = conditions.per_second(lambda: there.copy_(here), 0.3) * 8 * size / 1e9
    host = torch.empty(size, pin_memory=conditions.device.type == "cuda")
    for name, to, of in (("to_device", here, host), ("from_device", host, here)):
        rate = conditions.per_second(lambda to=to, of=of: to.copy_(of, non_blocking=True), 0.3)
        found[f"{name}_gigabytes_per_second"] = rate * 4 * size / 1e9
    found["summary"] = f"{found['bfloat16_tflops']:.0f} TFLOP/s in bfloat16, {found['float32_tflops']:.0f} in float32"
    return found


def with_goal(tokens_per_second: float, goal: float | None) -> str:
    """Return the rate as text, beside its goal."""
    return f"{tokens_per_second:,.0f} tokens/s" + (f" (goal {goal:,.0f})" if goal else "")


def build_learner(conditions: Conditions, config: Config) -> Learner:
    """Return a learner whose computation is set up as in the train stage."""
    computation = choose_computation(config.train, conditions.device, {})
    lexicon = draw_lexicon(config.vocab.size, config.model.num_slots)
    return build_trial(config, lexicon, conditions.device, computation.product_precision)


def _rate_of(conditions: Conditions, config: Config, learner: Learner, losses: list[float]) -> float:
    """Return the tokens per second of whole steps, whose losses are appended."""
    numbers = count(len(losses))

    def train_step() -> None:
        losses.append(learner.train_step(next(numbers), _LEARNING_RATE_FACTOR, lambda loss: loss)[0])

    return conditions.per_second(train_step) * step_tokens(config.train)


def _host_milliseconds(conditions: Conditions, config: Config) -> dict[str, float]:
    """Return how long the processor takes to prepare one step, while the device waits."""
    lexicon = draw_lexicon(config.vocab.size, config.model.num_slots)
    store, train = draw_store(lexicon, 8 * step_tokens(config.train)), config.train
    streams = PackedStreams(store.train, train.batch_size, train.unroll_steps, train.seed)
    sampler, generator = LogUniformSampler(config.vocab.size, train.num_negatives), np.random.default_rng(1)
    return {
        "batch_milliseconds": 1e3 / conditions.per_second(streams.next_batch, 0.3),
        "negatives_milliseconds": 1e3 / conditions.per_second(lambda: sampler.draw(generator), 0.3),
    }


def measure_training(
    conditions: Conditions, size: str, precision: str, goal: float | None = None, **changes: Any
) -> dict[str, Any]:
    """Tokens per second of training, with what makes it fast and without, and the share of the product rate."""
    config = conditions.config(size, precision=precision)
    mode = changes.pop("mode", "token")
    config = replace(config, model=replace(config.model, mode=mode), train=replace(config.train, **changes))
    started_at, losses = time.perf_counter(), []
    learner = build_learner(conditions, config)
    tokens = _rate_of(conditions, config, learner, losses)
    tflops = tokens * training_flops_per_token(config) / 1e12
    rate = conditions.product_tflops(PRECISIONS[precision].dtype)
    found = {
        "tokens_per_second": tokens,
        "goal": goal,
        "step_tokens": step_tokens(config.train),
        "step_milliseconds": 1e3 * step_tokens(config.train) / tokens,
        "tflops": tflops,
        "product_tflops": rate,
        "share_of_product_rate": tflops / rate,
        "kernel": "torch" if kernel_fallback(conditions.device) else "triton",
        "kernel_fallback": kernel_fallback(conditions.device),
        "capture_failure": learner.model.bilm.capture_failure(),
        "losses": [losses[0], losses[-1]],
        **conditions.peak_bytes(),
        "summary": f"{with_goal(tokens, goal)}, {tflops / rate:.1%} of the products' rate",
    }
    conditions.report(**found)
    found["problems"] = [reason for reason in (found["kernel_fallback"], found["capture_failure"]) if reason]
    if goal:
        conditions.report(**_host_milliseconds(conditions, config))
        conditions.report(**_rates_without(conditions, config, learner, losses))
    found["seconds_in_all"] = time.perf_counter() - started_at
    return found


def _rates_without(conditions: Conditions, config: Config, learner: Learner, losses: list[float]) -> dict[str, float]:
    """Return the tokens per second without graphs, and with torch's operations in place of Triton's."""
    with patch.object(gpu_recurrence, "_USE_GRAPHS", False):
        without_graphs = _rate_of(conditions, config, learner, losses)
    learner.model.prepare_for_training()  # the loops captured so far have Triton's cells
    with patch.object(gpu_recurrence, "choose_steps", lambda *_: PLAIN_STEPS):
        without_triton = _rate_of(conditions, config, learner, losses)
    return {"tokens_per_second_without_graphs": without_graphs, "tokens_per_second_without_triton": without_triton}


def measure_cudnn(conditions: Conditions) -> dict[str, Any]:
    """Training without clips and with carried state, in float32: cuDNN's layers beside ours."""
    config = conditions.config("FULL", precision="float32", carry_state=True)
    config = replace(config, model=replace(config.model, cell_clip=0.0, projection_clip=0.0))
    found: dict[str, Any] = {}
    used: list[bool] = []
    real = library_lstm.run_library_lstm

    def run(*arguments: Any) -> Any:
        used.append(True)
        return real(*arguments)

    with patch("elmo_zh.model.projected_lstm.run_library_lstm", run):
        found["cudnn_tokens_per_second"] = _rate_of(conditions, config, build_learner(conditions, config), [])
    conditions.report(**found, **conditions.peak_bytes())
    with patch("elmo_zh.model.projected_lstm.suits_library", lambda *_: False):
        found["ours_tokens_per_second"] = _rate_of(conditions, config, build_learner(conditions, config), [])
    found["problems"] = [] if used or conditions.device.type == "cpu" else ["cuDNN's layer was not used"]
    found["summary"] = (
        f"{found['cudnn_tokens_per_second']:,.0f} tokens/s with cuDNN, {found['ours_tokens_per_second']:,.0f} with ours"
    )
    return found


def measure_embedding(conditions: Conditions, size: str, goal: float | None = None) -> dict[str, Any]:
    """Tokens per second of embedding, from words to vectors in memory, and of the device alone."""
    config = conditions.config(size)
    model = LanguageModel.build(build_shape(config.model, config.vocab.size), tie_softmax=False)
    model.initialise(1)
    lexicon, generator = draw_lexicon(config.vocab.size, None), np.random.default_rng(1)
    num_sentences = 7 if conditions.is_tiny else 4000
    words = lexicon.vocabulary.tokens

    def draw_sentences(number: int) -> list[list[str]]:
        rows = draw_words(config.vocab.size, (number, SENTENCE_TOKENS), generator)
        return [[words[row] for row in sentence] for sentence in rows]

    sample = draw_sentences(20)
    expected = _vectors(model, lexicon, torch.device("cpu"), "float32", 4096).read(sample)
    model.to(conditions.device)
    flops, found = embed_flops(config), {}
    for precision in ("float32", "bfloat16"):
        for batch_tokens in (4096, 32_768):
            vectors = _vectors(model, lexicon, conditions.device, precision, batch_tokens)
            # Drawn beforehand; distinct sentences, since equal ones are computed once.
            texts = iter([draw_sentences(num_sentences) for _ in range(4)] * 10_000)
            rate = conditions.per_second(lambda vectors=vectors, texts=texts: vectors.read(next(texts)))
            found[f"{precision}_{batch_tokens}_tokens_per_second"] = rate * num_sentences * SENTENCE_TOKENS
        deviation = max(
            float(np.abs(ours - theirs).max()) for ours, theirs in zip(vectors.read(sample), expected, strict=True)
        )
        alone = _device_rate(conditions, model, precision)
        found |= {f"{precision}_largest_deviation": deviation, f"{precision}_device_tokens_per_second": alone}
        rate = conditions.product_tflops(PRECISIONS[precision].dtype)
        found[f"{precision}_device_share_of_product_rate"] = alone * flops / 1e12 / rate
        conditions.report(**found, **conditions.peak_bytes(), goal=goal)
    best = max(value for name, value in found.items() if name.endswith("_tokens_per_second") and "device" not in name)
    found["tokens_per_second"] = best
    found["summary"] = (
        f"{with_goal(best, goal)}; the device alone {found['bfloat16_device_tokens_per_second']:,.0f} in bfloat16"
    )
    deviation = found["float32_largest_deviation"]
    found["problems"] = [f"vectors deviate by {deviation}"] if not deviation <= LARGEST_DEVIATION else []
    return found


def _vectors(model: LanguageModel, lexicon: Any, device: torch.device, precision: str, tokens: int) -> SentenceVectors:
    return SentenceVectors(model.bilm, lexicon, device, PRECISIONS[precision], tokens, "unk")


@torch.no_grad()
def _device_rate(conditions: Conditions, model: LanguageModel, precision: str) -> float:
    """Return the tokens per second of the layers alone, without lists of words and copies to memory."""
    number, bilm = (3 if conditions.is_tiny else 1024), model.bilm
    rows = draw_words(bilm.shape.num_tokens, (number, SENTENCE_TOKENS + 2), np.random.default_rng(3))
    ids, mask = (each.to(conditions.device) for each in pad_sentences(list(rows)))
    state = bilm.start_state(number)

    def read() -> object:
        token_vectors = torch.nn.functional.embedding(ids, bilm.token_table.weight)
        return bilm.read_sentences(token_vectors, mask, state, PRECISIONS[precision])

    return conditions.per_second(read) * number * SENTENCE_TOKENS


def measure_profile(conditions: Conditions) -> dict[str, Any]:
    """The kernels that take most of a training step of FULL in bfloat16."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    config = conditions.config("FULL", precision="bfloat16")
    learner, steps = build_learner(conditions, config), 3
    for number in range(3):
        learner.train_step(number, _LEARNING_RATE_FACTOR, lambda loss: loss)
    conditions.wait()
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if conditions.device.type == "cuda" else [])
    with profile(activities=activities) as profiled:
        for number in range(3, 3 + steps):
            learner.train_step(number, _LEARNING_RATE_FACTOR, lambda loss: loss)
        conditions.wait()
    # An operation on the processor counts the time of its kernels as well, which have rows of their own.
    rows = [
        {
            "is_on_device": event.device_type != DeviceType.CPU,
            "name": event.key[:120],
            "calls_per_step": event.count / steps,
            "device_milliseconds_per_step": event.self_device_time_total / 1e3 / steps,
            "processor_milliseconds_per_step": event.self_cpu_time_total / 1e3 / steps,
        }
        for event in profiled.key_averages()
    ]
    kernels, operations = ([row for row in rows if row["is_on_device"] == flag] for flag in (True, False))
    on_device = sorted(kernels, key=lambda row: -row["device_milliseconds_per_step"])[:25]
    on_processor = sorted(operations, key=lambda row: -row["processor_milliseconds_per_step"])[:25]
    busy = sum(row["device_milliseconds_per_step"] for row in kernels)
    return {
        "device_busy_milliseconds_per_step": busy,
        "on_device": on_device,
        "on_processor": on_processor,
        "summary": f"the device computes {busy:.1f} ms of each step",
    }
