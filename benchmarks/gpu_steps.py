"""The steps of `benchmarks/gpu.py` that compare: the checks of the tests, equal bytes, resuming, and the commands."""

import shutil
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import gpu_checks
import numpy as np
import torch
from gpu_rates import (
    LARGEST_DEVIATION,
    ROOT,
    Conditions,
    measure_cudnn,
    measure_embedding,
    measure_products,
    measure_profile,
    measure_training,
)
from gpu_trainings import build_trainer

from elmo_zh.bundle.read import load_bundle
from elmo_zh.config import Config, load_config
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.selftest import run_selftest
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.run.files import file_digest
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.stages.pipeline import pipeline
from elmo_zh.training.metrics import MetricsFile
from elmo_zh.training.optimizer import step_tokens
from elmo_zh.training.perplexity import evaluate_files
from elmo_zh.training.trial import draw_lexicon, draw_store

_STEPS, _STEPS_BETWEEN = 24, 12
_WEIGHTS = ("model.safetensors", "optimizer.safetensors")


@dataclass(frozen=True)
class Step:
    """One step of the benchmark.

    Attributes:
        work: Returns figures; those named problems and summary are shown.
        limit_seconds: Seconds after which it is ended.
        is_deterministic: Whether its process has cuBLAS set up for equal bytes.
    """

    work: Callable[[Conditions], dict[str, Any]]
    limit_seconds: float
    is_deterministic: bool = False


def run_checks(conditions: Conditions, checks: Mapping[str, Callable[[], None]]) -> dict[str, Any]:
    """Run checks one by one, and keep the traceback of each that fails."""
    found: dict[str, str] = {}
    for name, check in checks.items():
        try:
            check()
            conditions.wait()
            found[name] = "passed"
        # Whatever a check raises, the others still run.
        except Exception:
            found[name] = traceback.format_exc()
        conditions.report(checks=found)
    failed = [name for name, result in found.items() if result != "passed"]
    return {
        "checks": found,
        "problems": [f"{name}: {found[name].strip().rpartition(chr(10))[2]}" for name in failed],
        "summary": f"{len(found) - len(failed)} of {len(found)} checks passed",
    }


def check_cells(conditions: Conditions) -> dict[str, Any]:
    return run_checks(conditions, gpu_checks.cell_checks(conditions.device.type))


def check_layers(conditions: Conditions) -> dict[str, Any]:
    return run_checks(conditions, gpu_checks.layer_checks(conditions.device.type))


def check_trainings(conditions: Conditions) -> dict[str, Any]:
    return run_checks(conditions, gpu_checks.training_checks(conditions.device.type))


def _train(conditions: Conditions, name: str, *, resumes: bool = False) -> tuple[dict[str, str], float]:
    """Train SMALL deterministically; return the digests of its last checkpoint and the tokens per second."""
    config = conditions.config("SMALL", precision="bfloat16", deterministic=True, epochs=0.0, log_every_steps=1)
    tokens = step_tokens(config.train)
    train = replace(
        config.train,
        max_tokens=_STEPS * tokens,
        checkpoint_every_tokens=_STEPS_BETWEEN * tokens,
        keep_checkpoints=_STEPS,
    )
    store = draw_store(draw_lexicon(config.vocab.size, None), 8 * tokens)
    model = LanguageModel.build(build_shape(config.model, config.vocab.size), tie_softmax=config.model.is_tied)
    folder = conditions.folder / name
    trainer = build_trainer(model, folder, conditions.device, train, store)
    if resumes and not trainer.resume():
        raise FileNotFoundError(f"{folder} holds no checkpoint to resume from")
    trainer.train()
    checkpoint = folder / "c" / f"step-{_STEPS:08d}"
    rates = [line["tokens_per_second"] for line in MetricsFile(folder / "m.jsonl").lines() if "train_loss" in line]
    return {file: file_digest(checkpoint / file) for file in _WEIGHTS}, float(np.median(rates))


def check_same_bytes(conditions: Conditions) -> dict[str, Any]:
    """Train twice in deterministic mode."""
    first, tokens = _train(conditions, "first")
    second, _ = _train(conditions, "second")
    return {
        "first": first,
        "second": second,
        "tokens_per_second": tokens,
        "problems": [] if first == second else ["two trainings ended with different bytes"],
        "summary": f"{'the same bytes' if first == second else 'different bytes'} twice, {tokens:,.0f} tokens/s",
        **conditions.peak_bytes(),
    }


def check_resume(conditions: Conditions) -> dict[str, Any]:
    """Resume, in a new process, the first training of `check_same_bytes` from its middle."""
    whole = conditions.folder / "first"
    checkpoint = whole / "c" / f"step-{_STEPS:08d}"
    expected = {file: file_digest(checkpoint / file) for file in _WEIGHTS}
    resumed = conditions.folder / "resumed"
    shutil.copytree(whole, resumed)
    shutil.rmtree(resumed / "c" / checkpoint.name)
    found, _ = _train(conditions, "resumed", resumes=True)
    return {
        "expected": expected,
        "found": found,
        "problems": [] if found == expected else ["the resumed training ended with different bytes"],
        "summary": "the same bytes" if found == expected else "different bytes",
    }


def check_commands(conditions: Conditions) -> dict[str, Any]:
    """Take our own sample from text to vectors as the commands do, on the device, and compare with a processor."""
    settings = [
        "text.segmenter=character", "text.num_workers=1", "word2vec.implementation=torch", "word2vec.epochs=1",
        "train.precision=auto", f"train.device={conditions.device.type}", "vocab.min_count=1", "train.epochs=3",
    ]  # fmt: skip
    if conditions.is_tiny:
        settings += ["model.cell_dim=13", "model.projection_dim=7", "train.epochs=0.2", "train.num_negatives=53"]
    config = load_config(Config(), ROOT / "configs" / "tiny.toml", settings)
    sample = ROOT / "data" / "sample"
    corpus = sample / "food.txt" if conditions.is_tiny else sample
    run = RunDir(conditions.folder / "commands")
    pipeline(run, config, [str(corpus)], force=False, reporter=SilentReporter())
    device, bundle = conditions.device.type, load_bundle(run.model)
    heldout = find_sources([str(run.path / "segmented" / "heldout-*.txt")]).sources
    texts = [input_text(source, config.text, segmented=True) for source in heldout]
    perplexity = {
        where: evaluate_files(
            load_bundle(run.model), texts, segmented=True, device=where, reporter=SilentReporter()
        ).figures.perplexity
        for where in ("cpu", device)
    }
    sentences = [line.split(" ") for line in heldout[0].path.read_text(encoding="utf-8").splitlines()]
    vectors = [ElmoEmbedder.load(run.model, where).embed_tokens(sentences) for where in ("cpu", device)]
    deviation = max(float(np.abs(ours - theirs).max()) for ours, theirs in zip(*vectors, strict=True) if ours.size)
    failed = [f"{check.name}: {check.found}" for check in run_selftest(bundle, device) if not check.passed]
    problems = [f"selftest: {text}" for text in failed if not conditions.is_tiny]
    if deviation > LARGEST_DEVIATION:
        problems.append(f"vectors deviate by {deviation}")
    if abs(perplexity[device] / perplexity["cpu"] - 1) > 1e-4:
        problems.append(f"perplexity {perplexity[device]} is {perplexity['cpu']} on a processor")
    rates = [line["tokens_per_second"] for line in MetricsFile(run.metrics).lines() if "train_loss" in line]
    return {
        "perplexity": perplexity,
        "largest_deviation": deviation,
        "tokens_per_second": float(np.median(rates)),
        "problems": problems,
        "summary": f"perplexity {perplexity[device]:.2f}, on a processor {perplexity['cpu']:.2f}; vectors deviate by"
        f" {deviation:.1e}",
    }


def _training(size: str, precision: str, goal: float | None = None, **changes: Any) -> Step:
    return Step(lambda conditions: measure_training(conditions, size, precision, goal, **changes), 60)


# The most informative first, in case time runs out.
STEPS: dict[str, Step] = {
    "check cells": Step(check_cells, 60),
    "check layers": Step(check_layers, 110),
    "products": Step(measure_products, 40),
    "train FULL bfloat16": _training("FULL", "bfloat16", 300_000),
    "train SMALL bfloat16": _training("SMALL", "bfloat16", 1_500_000),
    "embed FULL": Step(lambda conditions: measure_embedding(conditions, "FULL", 1_000_000), 70),
    "check trainings": Step(check_trainings, 120, is_deterministic=True),
    "same bytes": Step(check_same_bytes, 60, is_deterministic=True),
    "resume": Step(check_resume, 40, is_deterministic=True),
    "commands": Step(check_commands, 90),
    "profile FULL bfloat16": Step(measure_profile, 50),
    "train FULL float32": _training("FULL", "float32"),
    "train SMALL float32": _training("SMALL", "float32"),
    "train configs/original.toml bfloat16": _training("ORIGINAL", "bfloat16"),
    "train FULL with cuDNN": Step(measure_cudnn, 60),
    "embed SMALL": Step(lambda conditions: measure_embedding(conditions, "SMALL"), 50),
    "train FULL bfloat16, batch 512": _training("FULL", "bfloat16", batch_size=512),
    "train SMALL bfloat16, batch 512": _training("SMALL", "bfloat16", batch_size=512),
    "train SMALL bfloat16, full softmax": _training("SMALL", "bfloat16", softmax="full"),
    "train SMALL bfloat16, characters": _training("SMALL", "bfloat16", mode="character"),
}


def run_step(name: str, conditions: Conditions) -> dict[str, Any]:
    """Return a step's figures, with its status: passed or failed."""
    try:
        figures = STEPS[name].work(conditions)
    # Whatever a step raises is reported, and the other steps still run.
    except Exception as error:
        last = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
        return {"status": "failed", "problems": [last], "traceback": traceback.format_exc()}
    return {**figures, "status": "failed" if figures.get("problems") else "passed"}


def describe_device(device: torch.device) -> dict[str, Any]:
    """Return what computes, for the record."""
    if device.type == "cpu":
        return {"name": "a processor, to try the code"}
    properties = torch.cuda.get_device_properties(device)
    return {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory_bytes": properties.total_memory,
        "multiprocessors": properties.multi_processor_count,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }
