"""Check and measure training and embedding on a GPU, in some minutes.

Usage: PYTHONPATH=. python benchmarks/gpu.py --output FOLDER     (make bench-gpu)
       PYTHONPATH=. python benchmarks/gpu.py --output FOLDER --device cpu --small     (try the code without a GPU)

Needs torch 2.11 or later, numpy, h5py, safetensors, msgspec and threadpoolctl, not this program. It runs the checks of
`pytest -m gpu` against a processor, equal bytes of two trainings and resuming among them; measures products, and
training and embedding FULL (cell 4096, projection 512) and SMALL (1024 and 256), the sizes of benchmarks/speed.py, on
random words; and takes data/sample through all stages. A step that fails is reported, and the others still run.

Writes FOLDER/gpu.json and FOLDER/gpu.txt, anew after each step. Exit status: 0 if every step passed, 1 if one failed, 2
without a GPU.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
for path in (ROOT / "tests", ROOT / "benchmarks", ROOT):
    sys.path.insert(0, str(path))
# cuBLAS reads this when it is first used; the checks of equal bytes need it.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from gpu_checks import checks  # noqa: E402
from speed import FULL, SMALL, per_second  # noqa: E402

from elmo_zh.allocator import keep_freed_memory  # noqa: E402
from elmo_zh.bundle.read import load_bundle  # noqa: E402
from elmo_zh.config import Config, load_config  # noqa: E402
from elmo_zh.embed.embedder import ElmoEmbedder  # noqa: E402
from elmo_zh.embed.selftest import run_selftest  # noqa: E402
from elmo_zh.embed.sentence_vectors import SentenceVectors  # noqa: E402
from elmo_zh.model.language_model import LanguageModel, build_shape, weights_of  # noqa: E402
from elmo_zh.model.precision import PRECISIONS  # noqa: E402
from elmo_zh.model.sentence_reader import build_torch_reader  # noqa: E402
from elmo_zh.run.layout import RunDir  # noqa: E402
from elmo_zh.run.record import StageContext  # noqa: E402
from elmo_zh.run.reporter import SilentReporter  # noqa: E402
from elmo_zh.stages.model import pipeline  # noqa: E402
from elmo_zh.training.computation import (  # noqa: E402
    SENTENCE_TOKENS,
    build_trial,
    choose_computation,
    draw_lexicon,
    draw_words,
)
from elmo_zh.training.optimizer import step_tokens  # noqa: E402
from elmo_zh.version import __version__  # noqa: E402

SIZES, TIMED = {"FULL": FULL, "SMALL": SMALL}, ("bfloat16", "float32")
PAIRS = tuple(product(SIZES, TIMED))
LARGEST_DEVIATION = 1e-4


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Where and how long to measure; tiny models exercise the code."""

    device: torch.device
    is_tiny: bool
    seconds: float

    def config(self, size: str, **train: Any) -> Config:
        """Return the settings of a size, with changes of section train."""
        config = SIZES[size]
        if self.is_tiny:
            config = replace(
                config,
                vocab=replace(config.vocab, size=97),
                model=replace(config.model, cell_dim=13, projection_dim=7),
                train=replace(config.train, batch_size=3, unroll_steps=5, num_negatives=11),
            )
        return replace(config, train=replace(config.train, **train))

    def per_second(self, work: Callable[[], object]) -> float:
        """Return how often `work` runs per second, after two warm-up runs."""

        def work_and_wait() -> None:
            work()
            self.wait()

        return per_second(work_and_wait, self.seconds)

    def wait(self) -> None:
        """Wait until the device has finished."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def run_checks(conditions: Conditions) -> dict[str, Any]:
    """Run all checks; a failed one does not keep the others from running."""
    problems: dict[str, str] = {}
    names = checks(conditions.device.type)
    for name, check in names.items():
        try:
            check()
            conditions.wait()
        except Exception as error:  # whatever a check raises
            problems[name] = f"{type(error).__name__}: {error}"
    assert not problems, "; ".join(f"{name}: {problem}" for name, problem in problems.items())
    return {"summary": f"{len(names)} checks passed"}


def measure_products(conditions: Conditions, precision: str) -> dict[str, Any]:
    """Measure a large square product."""
    size, dtype = 32 if conditions.is_tiny else 8192, PRECISIONS[precision].dtype
    left, right = (torch.randn(size, size, device=conditions.device).to(dtype) for _ in range(2))
    tflops = conditions.per_second(lambda: left @ right) * 2 * size**3 / 1e12
    return {"tflops": tflops, "summary": f"{tflops:.0f} TFLOP/s"}


def measure_training(conditions: Conditions, size: str, **changes: Any) -> dict[str, Any]:
    """Measure whole steps, from the streams to the optimisers."""
    config = conditions.config(size, **changes)
    computation = choose_computation(config.train, config.model, conditions.device, {})
    lexicon = draw_lexicon(config.vocab.size, config.model.num_slots)
    learner = build_trial(config, lexicon, conditions.device, computation.product_precision)
    numbers = count()
    # Without a warm-up, full learning rates may lead to infinite losses.
    steps = conditions.per_second(lambda: learner.train_step(next(numbers), 0.05, lambda loss: loss))
    tokens = steps * step_tokens(config.train)
    return {"tokens_per_second": tokens, "summary": f"{tokens:,.0f} tokens/s"}


def measure_embedding(conditions: Conditions, size: str, precision: str) -> dict[str, Any]:
    """Measure embedding, from words to vectors in memory; float32 vectors have to be those of a processor."""
    config = conditions.config(size)
    model = LanguageModel.build(build_shape(config.model, config.vocab.size), tie_softmax=False)
    model.initialise(1)
    lexicon, generator = draw_lexicon(config.vocab.size, None), np.random.default_rng(1)

    def vectors_on(device: str, name: str) -> SentenceVectors:
        weights, read_batch = weights_of(model.bilm, None), None
        if (device, name) != ("cpu", "float32"):
            read_batch = build_torch_reader(model.bilm, name, device)
        return SentenceVectors(weights, lexicon, 32_768, "unk", read_batch)

    def draw_sentences(number: int) -> list[list[str]]:
        rows = draw_words(config.vocab.size, (number, SENTENCE_TOKENS), generator)
        return [[lexicon.vocabulary.tokens[row] for row in sentence] for sentence in rows]

    sample, number = draw_sentences(20), 7 if conditions.is_tiny else 4000
    expected = vectors_on("cpu", "float32").read(sample)
    vectors = vectors_on(conditions.device.type, precision)
    deviation = max(
        float(np.abs(ours - theirs).max()) for ours, theirs in zip(vectors.read(sample), expected, strict=True)
    )
    assert precision != "float32" or deviation <= LARGEST_DEVIATION, f"vectors deviate by {deviation}"
    tokens = conditions.per_second(lambda: vectors.read(draw_sentences(number))) * number * SENTENCE_TOKENS
    return {"tokens_per_second": tokens, "deviation": deviation, "summary": f"{tokens:,.0f} tokens/s"}


def run_commands(conditions: Conditions) -> dict[str, Any]:
    """Take our own sample from text to vectors as the commands do, on the device, and compare with a processor."""
    device = conditions.device.type
    settings = [
        "text.segmenter=character", "text.num_workers=1", "word2vec.implementation=torch", "word2vec.epochs=1",
        f"train.device={device}", "vocab.min_count=1",
    ]  # fmt: skip
    if conditions.is_tiny:
        settings += ["model.cell_dim=13", "model.projection_dim=7", "train.epochs=0.2", "train.num_negatives=53"]
    corpus = ROOT / "data" / "sample" / ("food.txt" if conditions.is_tiny else "")
    with tempfile.TemporaryDirectory(prefix="elmo-zh-gpu-") as folder:
        run = RunDir(Path(folder) / "run")
        config = load_config(Config(), ROOT / "configs" / "tiny.toml", settings)
        pipeline(StageContext(run=run, config=config, reporter=SilentReporter()), [str(corpus)])
        heldout = (run.path / "segmented" / "heldout-00000.txt").read_text(encoding="utf-8")
        sentences = [line.split(" ") for line in heldout.splitlines()]
        vectors = [ElmoEmbedder.load(run.model, where).embed_tokens(sentences) for where in ("cpu", device)]
        failed = [each for each in run_selftest(load_bundle(run.model), device) if not each.passed]
    deviation = max(float(np.abs(ours - theirs).max()) for ours, theirs in zip(*vectors, strict=True))
    assert deviation <= LARGEST_DEVIATION, f"vectors deviate by {deviation}"
    assert conditions.is_tiny or not failed, failed
    return {"deviation": deviation, "summary": f"vectors deviate by {deviation:.1e}"}


STEPS: dict[str, Callable[[Conditions], dict[str, Any]]] = {
    "checks": run_checks,
    **{f"time products {name}": partial(measure_products, precision=name) for name in TIMED},
    **{f"time train {size} {name}": partial(measure_training, size=size, precision=name) for size, name in PAIRS},
    **{f"time embed {size} {name}": partial(measure_embedding, size=size, precision=name) for size, name in PAIRS},
    "time train SMALL deterministic": partial(measure_training, size="SMALL", precision="float32", deterministic=True),
    "commands": run_commands,
}


def run_step(name: str, conditions: Conditions) -> dict[str, Any]:
    """Return a step's figures, with its status."""
    started_at = time.monotonic()
    try:
        figures = {"status": "passed", **STEPS[name](conditions)}
    except Exception as error:  # whatever a step raises is reported
        figures = {"status": "failed", "summary": f"{type(error).__name__}: {error}", "log": traceback.format_exc()}
    return {**figures, "elapsed_seconds": round(time.monotonic() - started_at, 1)}


def describe_machine(device: torch.device) -> dict[str, Any]:
    """Return machine and versions, for the record."""
    is_gpu = device.type == "cuda"
    return {
        "elmo_zh": __version__, "machine": platform.machine(), "cores": os.cpu_count(), "torch": torch.__version__,
        "cuda": torch.version.cuda, "device": torch.cuda.get_device_name(device) if is_gpu else "a processor",
    }  # fmt: skip


def render(record: Mapping[str, Any]) -> str:
    """Return the record as text: the machine, then one line a step."""
    machine = record["machine"]
    lines = [f"elmo-zh {machine['elmo_zh']}, torch {machine['torch']} on {machine['device']}, {record['started_at']}"]
    for name, found in record["steps"].items():
        summary = " ".join(found["summary"].split())[:300]
        lines.append(f"{found['status']:7} {found['elapsed_seconds']:5.0f} s  {name:31} {summary}")
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="folder of gpu.json and gpu.txt")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu tries the code (default: cuda)")
    parser.add_argument("--small", action="store_true", help="tiny models, to try the code")
    parser.add_argument("--only", default="", help="run only steps whose name contains this text")
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds of each measurement (default: 3)")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("No CUDA device was found. To try the code without one: --device cpu --small", file=sys.stderr)
        return 2
    keep_freed_memory()
    conditions = Conditions(device=torch.device(arguments.device), is_tiny=arguments.small, seconds=arguments.seconds)
    record = {
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": describe_machine(conditions.device), "steps": {},
    }  # fmt: skip
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in (name for name in STEPS if arguments.only in name):
        record["steps"][name] = run_step(name, conditions)
        print(render(record).splitlines()[-1], flush=True)
        (arguments.output / "gpu.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        (arguments.output / "gpu.txt").write_text(render(record), encoding="utf-8")
    return int(any(found["status"] != "passed" for found in record["steps"].values()))


if __name__ == "__main__":
    sys.exit(main())
