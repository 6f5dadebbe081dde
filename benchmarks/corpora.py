"""How fast `segment` is from compressed files to segmented text, beside segmenters left alone, and where time goes.

Usage: python benchmarks/corpora.py CORPUS... [--segmenter jieba|rjieba] [--workers 2] [--repeats 3] [--record]
       python benchmarks/corpora.py CORPUS... --memory TIMES [--segmenter rjieba] [--work FOLDER]

First: so many processes each cut their share of the corpus' lines, which they hold in memory, with nothing around it;
then the whole command runs on the same files, dictionary and start-up included; in turns, and the best of each counts.
Rates are MB of UTF-8 text per second; one bare process of jieba is measured too. Then each step's share of processor
time, in one process.
With --memory: highest memory of the main process and of a worker, for the corpus once and so many times as large; every
copy has its numbers and some of its characters changed, so that no line stands there twice.
"""

import argparse
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning.line_counts import LineCounts
from elmo_zh.corpus.read_source import read_source
from elmo_zh.corpus.sources import find_sources
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.run.job import Files, FinishedPart
from elmo_zh.segmenting.duplicates import key_rule
from elmo_zh.segmenting.heldout import paragraph_key
from elmo_zh.segmenting.shard_task import CorpusPreparation
from elmo_zh.segmenting.text_shards import TextShardWriter
from elmo_zh.text.segmenters.registry import build_segmenter
from elmo_zh.text.sentences import split_sentences

CONFIG = TextConfig()
MEGABYTE = 10**6
# Of so many lines jieba cuts one, where only its rate is wanted.
JIEBA_SHARE = 12


def iter_corpus(corpus: list[str]) -> Iterator[str]:
    for source in find_sources(corpus).sources:
        for document in read_source(source, CONFIG, Tally(), PassedOver()):
            yield from document


def cut_alone(segmenter: str, lines: list[str], ready: Any, start: Any, done: Any) -> None:
    """Cut lines with a segmenter as its package has it."""
    if segmenter == "jieba":
        import jieba

        jieba.setLogLevel(60)
        jieba.initialize()
        cut: Callable[[str], list[str]] = jieba.lcut
    else:
        import rjieba

        cut = rjieba.cut
    ready.wait()
    start.wait()
    for line in lines:
        cut(line)
    done.wait()


def rate_alone(segmenter: str, lines: list[str], workers: int) -> float:
    """Return MB per second of processes that do nothing but cut, from when all have their lines to the last's end."""
    context = multiprocessing.get_context("fork")
    ready, start, done = (context.Barrier(workers + 1) for _ in range(3))
    processes = [
        context.Process(target=cut_alone, args=(segmenter, lines[number::workers], ready, start, done))
        for number in range(workers)
    ]
    for process in processes:
        process.start()
    ready.wait()
    began = time.perf_counter()
    start.wait()
    done.wait()
    seconds = time.perf_counter() - began
    for process in processes:
        process.join()
    return num_bytes(lines) / MEGABYTE / seconds


def rate_of_command(segmenter: str, corpus: list[str], workers: int, size: int) -> float:
    with TemporaryDirectory() as folder:
        began = time.perf_counter()
        run_segment(segmenter, corpus, workers, Path(folder) / "run")
        return size / MEGABYTE / (time.perf_counter() - began)


def segment_command(segmenter: str, corpus: list[str], workers: int, run: Path) -> list[str]:
    changes = [f"text.segmenter={segmenter}", f"text.num_workers={workers}"]
    options = [word for change in changes for word in ("--set", change)]
    return [sys.executable, "-m", "elmo_zh", "segment", *corpus, "--run", str(run), "--quiet", *options]


def run_segment(segmenter: str, corpus: list[str], workers: int, run: Path) -> None:
    subprocess.run(segment_command(segmenter, corpus, workers, run), check=True)


def num_bytes(lines: list[str]) -> int:
    return sum(len(line.encode("utf-8")) + 1 for line in lines)


def consume(results: Iterable[Any]) -> None:
    """Have all results made, and keep none, as the stage does."""
    deque(results, maxlen=0)


def joined(segmented: list[list[str]]) -> tuple[bytes, int]:
    """Return a paragraph as it is written, and its key."""
    sentences = list(map(" ".join, segmented))
    return "\n".join(sentences).encode("utf-8"), paragraph_key(sentences)


def shares(segmenter: str, corpus: list[str]) -> dict[str, float]:
    """Return processor seconds of each step on the whole corpus, in one process."""
    config = replace(CONFIG, segmenter=segmenter)
    preparation = CorpusPreparation.build(config)
    cut = build_segmenter(config)
    cut("热身")
    seconds: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.process_time()
        result = work()
        seconds[name] = time.process_time() - began
        return result

    lines = timed("unpack, decode, split lines", lambda: list(iter_corpus(corpus)))
    with (
        TemporaryDirectory() as folder,
        TextShardWriter(Files(FinishedPart(Path(folder), "a")), 2**25, key_rule(config)) as writer,
    ):
        writer.start_document(0)
        timed("write pieces and keys of lines", lambda: consume(map(writer.write, lines)))
    counts = LineCounts()
    timed("clean", lambda: consume(preparation.cleaner.clean(line, counts) for line in lines))
    plain = preparation.preparation
    timed("split sentences", lambda: consume(map(split_sentences, lines)))
    sentences = timed(
        "split, normalise", lambda: [text for line in lines for text in plain.sentence_texts(line, counts.change)]
    )
    seconds["normalise"] = max(0.0, seconds.pop("split, normalise") - seconds["split sentences"])
    timed("cut", lambda: consume(cut(sentence) for sentence in sentences))
    timed("all of a line", lambda: consume(joined(preparation.sentences(line, counts)) for line in lines))
    known = seconds["clean"] + seconds["split sentences"] + seconds["normalise"] + seconds["cut"]
    seconds["count, join, hash"] = max(0.0, seconds.pop("all of a line") - known)
    with TemporaryDirectory() as folder, (Path(folder) / "a").open("w", encoding="utf-8") as file:
        timed("write", lambda: consume(file.write(line + "\n") for line in lines))
    return seconds


def multiplied(corpus: list[str], times: int, folder: Path) -> list[str]:
    """Write the corpus so many times, changed each time, and return the files."""
    paths = []
    for number in range(times):
        path = folder / f"copy-{number:03d}.txt"
        with path.open("w", encoding="utf-8") as file:
            for line in iter_corpus(corpus):
                file.write(f"{_changed(line, number)}\n")
        paths.append(str(path))
    return paths


def _changed(line: str, number: int) -> str:
    if not number:
        return line
    changed = re.sub(r"\d+", lambda found: str(int(found[0][:9]) + number), line)
    middle = len(changed) // 2
    return f"{changed[:middle]}第{number}{changed[middle:]}" if len(changed) > 3 else changed


def peak_memory(command: list[str]) -> tuple[float, float]:
    """Return the highest resident MB of the main process and of its largest child, looked at every 50 ms."""
    process = subprocess.Popen(command)
    peaks = [0.0, 0.0]

    def resident(pid: int) -> float:
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        except OSError:
            return 0.0
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else 0.0

    def watch() -> None:
        while process.poll() is None:
            peaks[0] = max(peaks[0], resident(process.pid))
            try:
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
            except OSError:
                continue
            peaks[1] = max(peaks[1], *map(resident, map(int, children.split())), 0.0)
            time.sleep(0.05)

    watcher = threading.Thread(target=watch)
    watcher.start()
    process.wait()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{command} failed")
    return peaks[0], peaks[1]


def measure_memory(arguments: argparse.Namespace) -> dict[str, Any]:
    work = Path(arguments.work)
    work.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    for times in (1, arguments.memory):
        folder, run = work / f"times-{times}", work / f"run-{times}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(run, ignore_errors=True)
        folder.mkdir()
        paths = multiplied(arguments.corpus, times, folder)
        size = sum(Path(path).stat().st_size for path in paths)
        stages = {"segment": segment_command(arguments.segmenter, paths, arguments.workers, run)}
        for stage in ("vocab", "encode"):
            stages[stage] = [sys.executable, "-m", "elmo_zh", stage, "--run", str(run), "--quiet"]
        for stage, command in stages.items():
            began = time.perf_counter()
            main, worker = peak_memory(command)
            seconds = time.perf_counter() - began
            found[f"{stage} x{times}"] = {
                "main_mb": main,
                "worker_mb": worker,
                "seconds": seconds,
                "corpus_bytes": size,
            }
            print(
                f"{stage:8} {size / MEGABYTE:8,.0f} MB: main {main:,.0f} MB, worker {worker:,.0f} MB, {seconds:,.0f} s"
            )
        shutil.rmtree(folder)
    return found


def measure_rates(arguments: argparse.Namespace) -> dict[str, Any]:
    lines = list(iter_corpus(arguments.corpus))
    size = num_bytes(lines)
    print(f"{size / MEGABYTE:,.1f} MB of text in {len(lines):,} lines; {arguments.workers} processes")
    alone, whole = [], []
    for _ in range(arguments.repeats):
        alone.append(rate_alone(arguments.segmenter, lines, arguments.workers))
        whole.append(rate_of_command(arguments.segmenter, arguments.corpus, arguments.workers, size))
        print(
            f"{arguments.segmenter} alone {alone[-1]:6.2f} MB/s, segment end to end {whole[-1]:6.2f} MB/s", flush=True
        )
    print(f"best: {max(whole):.2f} of {max(alone):.2f} MB/s = {max(whole) / max(alone):.1%}")
    jieba = rate_alone("jieba", lines[::JIEBA_SHARE], 1)
    print(f"one bare process of jieba: {jieba:.2f} MB/s; segment end to end: {max(whole) / jieba:.1f} times as fast")
    del lines
    seconds = shares(arguments.segmenter, arguments.corpus)
    for name, spent in seconds.items():
        print(f"{name:32} {1000 * spent / (size / MEGABYTE):7.1f} ms per MB {spent / sum(seconds.values()):6.1%}")
    return {
        "alone_mb_per_second": alone,
        "one_jieba_mb_per_second": jieba,
        "segment_mb_per_second": whole,
        "seconds": seconds,
        "bytes": size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="+")
    parser.add_argument("--segmenter", choices=("jieba", "rjieba"), default="jieba")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", type=int, metavar="TIMES")
    parser.add_argument("--work", default="corpora-benchmark")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    found = measure_memory(arguments) if arguments.memory else measure_rates(arguments)
    if arguments.record:
        kind = "memory" if arguments.memory else "rates"
        path = Path(__file__).parent / "records" / f"{date.today()}-corpora-{arguments.segmenter}-{kind}.json"
        path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
