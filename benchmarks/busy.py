"""Measure how much speed training and embedding lose beside other busy programs.

Usage: python benchmarks/busy.py [--seconds S] [--rounds N] [--work train embed] [--sizes tiny small] [--busy 0 1 2]
                                 [--against NAME=FOLDER ...] [--record FILE]

Trains and embeds random words with the models of configs/tiny.toml and configs/small.toml, alone and beside one and two
programs that do nothing but compute. Every combination is measured for some seconds in each round, all in turns, so
that a change of the machine's speed reaches all of them. --against measures other versions too: NAME is any name,
FOLDER a checkout of elmo-zh. Each row is the median of the rounds, and its share of the same work's median alone.

An interval in which programs other than these used the processors (column `others`, in processors, at most --others) is
left out, since it is no measurement of what the row says. Needs Linux: it reads /proc.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from itertools import count, product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SENTENCES, SENTENCE_TOKENS = 200, 20
WARM_UP_SECONDS = 0.3


# In a process of its own, with the version of elmo-zh that PYTHONPATH names


def answer_requests(work: str, size: str) -> None:
    """For each line of standard input, a number of seconds, print tokens per second and processor seconds."""
    from elmo_zh.allocator import keep_freed_memory, let_idle_threads_sleep

    let_idle_threads_sleep()
    keep_freed_memory()
    run = build_work(work, size)
    for _ in range(3):
        run()
    print("ready", flush=True)
    for line in sys.stdin:
        repeat(run, WARM_UP_SECONDS)
        cpu_before = time.process_time()
        tokens, seconds = repeat(run, float(line))
        print(tokens / seconds, time.process_time() - cpu_before, seconds, flush=True)


def repeat(run: Callable[[], int], seconds: float) -> tuple[int, float]:
    """Return the tokens and the seconds of as many runs as fill the time."""
    tokens, started_at = 0, time.perf_counter()
    while time.perf_counter() - started_at < seconds:
        tokens += run()
    return tokens, time.perf_counter() - started_at


def build_work(work: str, size: str) -> Callable[[], int]:
    """Return a function that trains one step, or embeds some new sentences, and returns how many tokens it took."""
    import numpy as np
    import torch

    from elmo_zh.config import Config
    from elmo_zh.config.load import load_config
    from elmo_zh.embed.sentence_vectors import SentenceVectors
    from elmo_zh.model.language_model import LanguageModel, build_shape, weights_of
    from elmo_zh.training.computation import choose_computation
    from elmo_zh.training.optimizer import step_tokens
    from elmo_zh.training.trial import build_trial, draw_lexicon, draw_words

    config, cpu = load_config(Config(), ROOT / "configs" / f"{size}.toml", []), torch.device("cpu")
    lexicon = draw_lexicon(config.vocab.size, config.model.num_slots)
    if work == "train":
        precision = choose_computation(config.train, config.model, cpu, {}).product_precision
        learner, numbers = build_trial(config, lexicon, cpu, precision), count()

        def train() -> int:
            learner.train_step(next(numbers), 1.0, lambda loss: loss)
            return step_tokens(config.train)

        return train
    model = LanguageModel.build(build_shape(config.model, config.vocab.size), tie_softmax=False)
    model.initialise(1)
    vectors = SentenceVectors(weights_of(model.bilm, None), lexicon, config.embed.batch_tokens, "unk")
    generator, words = np.random.default_rng(1), lexicon.vocabulary.tokens

    def embed() -> int:
        rows = draw_words(config.vocab.size, (SENTENCES, SENTENCE_TOKENS), generator)
        vectors.read([[words[row] for row in sentence] for sentence in rows])
        return rows.size

    return embed


# In this process


class Worker:
    """A process with one version, one kind of work and one size, ready to work for some seconds."""

    def __init__(self, folder: Path, work: str, size: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--answer", work, size],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        assert self._process.stdin
        assert self._process.stdout
        self._input, self._output = self._process.stdin, self._process.stdout
        assert self._output.readline() == "ready\n", "the worker has failed; its error is above"

    def measure(self, seconds: float, num_busy: int) -> tuple[float, float]:
        """Return tokens per second beside busy programs, and the processors that all others used meanwhile."""
        with busy_programs(num_busy) as programs:
            used, by_busy, started_at = used_seconds(), sum(map(process_seconds, programs)), time.perf_counter()
            own = process_seconds(self._process.pid)
            self._input.write(f"{seconds}\n")
            self._input.flush()
            rate, *_ = map(float, self._output.readline().split())
            elapsed = time.perf_counter() - started_at
            counted = process_seconds(self._process.pid) - own + sum(map(process_seconds, programs)) - by_busy
            return rate, max(0.0, (used_seconds() - used - counted) / elapsed)

    def stop(self) -> None:
        self._input.close()
        self._process.wait()


@contextmanager
def busy_programs(number: int) -> Iterator[list[int]]:
    """Run programs that do nothing but compute; yields their process ids."""
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        time.sleep(0.1)
        yield [program.pid for program in programs]
    finally:
        for program in programs:
            program.kill()
            program.wait()


def used_seconds() -> float:
    """Return the seconds in which the machine's processors were not idle."""
    user, nice, system, _, _, *others = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    return (user + nice + system + sum(others[:2])) / os.sysconf("SC_CLK_TCK")


def process_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def measure_all(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each version, work, size and number of busy programs."""
    versions = {"this version": ROOT} | {name: Path(folder) for name, _, folder in arguments.against}
    kinds = list(product(arguments.work, arguments.sizes, versions))
    workers = {kind: Worker(versions[kind[2]], *kind[:2]) for kind in kinds}
    found: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for _ in range(arguments.rounds):
        for (work, size, version), num_busy in product(kinds, arguments.busy):
            measured = workers[work, size, version].measure(arguments.seconds, num_busy)
            found.setdefault((work, size, num_busy, version), []).append(measured)
    for worker in workers.values():
        worker.stop()
    names = ("work", "size", "busy", "version")
    keys = product(arguments.work, arguments.sizes, arguments.busy, versions)
    return [dict(zip(names, key, strict=True)) | {"intervals": found[key]} for key in keys]


def print_table(rows: list[dict[str, Any]], most_others: float) -> None:
    """Print the medians of the intervals that others did not disturb, which are added to the rows."""
    alone: dict[tuple[str, ...], float] = {}
    print(
        f"{'work':6} {'size':6} {'busy':>4} {'version':16} {'tokens/s':>9} {'share':>6} {'intervals':>9} {'others':>6}"
    )
    for row in rows:
        kept = [rate for rate, others in row["intervals"] if others <= most_others]
        rate = row["tokens_per_second"] = statistics.median(kept) if kept else None
        key = row["work"], row["size"], row["version"]
        if row["busy"] == 0 and rate:
            alone[key] = rate
        share = row["share"] = rate / alone[key] if rate and key in alone else None
        others = statistics.median(others for _, others in row["intervals"])
        name = f"{row['work']:6} {row['size']:6} {row['busy']:4} {row['version']:16}"
        figures = f"{rate:9,.0f}" if rate else f"{'-':>9}", f"{share:6.0%}" if share else f"{'-':>6}"
        print(name, *figures, f"{len(kept):4} of {len(row['intervals']):2}", f"{others:6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="seconds of each interval")
    parser.add_argument("--rounds", type=int, default=5, help="intervals of each row")
    parser.add_argument("--work", nargs="+", default=["train", "embed"], choices=["train", "embed"])
    parser.add_argument("--sizes", nargs="+", default=["tiny", "small"], help="names of files in configs/")
    parser.add_argument("--busy", nargs="+", type=int, default=[0, 1, 2], help="numbers of busy programs")
    parser.add_argument(
        "--against", nargs="+", default=[], type=lambda text: text.partition("="), metavar="NAME=FOLDER",
        help="other versions of elmo-zh to measure too",
    )  # fmt: skip
    parser.add_argument("--others", type=float, default=0.1, help="processors that other programs may use meanwhile")
    parser.add_argument("--record", help="file for the figures, JSON")
    parser.add_argument("--answer", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer:
        answer_requests(*arguments.answer)
        return
    rows = measure_all(arguments)
    print_table(rows, arguments.others)
    if arguments.record:
        about = {"date": str(date.today()), "machine": platform.machine(), "processors": os.cpu_count(),
                 "seconds_each": arguments.seconds, "most_others": arguments.others}  # fmt: skip
        Path(arguments.record).write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
