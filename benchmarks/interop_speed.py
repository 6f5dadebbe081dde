"""How fast do we and other programs embed the same sentences with the same model, in turns?

    OMP_NUM_THREADS=1 TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1 \\
        python benchmarks/interop_speed.py --run runs/interop --python python3 --python37 python3.7

The other programs and their environments are those of `make interop`.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "interop"))
from compare import HERE, READERS, ROOT, SURROUNDINGS, InteropError, elmo_zh, install, parser_of, train
from exchange import load_sentences

NUM_SENTENCES = 1000


def main() -> int:
    """Race all programs that can be installed; return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each program")
    arguments = parser.parse_args()
    try:
        run = Path(arguments.run) if arguments.run else train()
        with TemporaryDirectory(prefix="elmo-zh-interop-") as folder:
            measure_speed(run, Path(folder), arguments)
    except InteropError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def measure_speed(run: Path, folder: Path, arguments: argparse.Namespace) -> None:
    """Print how long each program that can be installed takes to embed the same sentences, in turns."""
    bundle, text = folder / "bundle", folder / "text.txt"
    elmo_zh("export", "--run", run, "--output", bundle)
    elmo_zh("export", "--run", run, "--output", folder / "simple_elmo", "--layout", "simple_elmo")
    lines = [line for file in sorted((ROOT / run / "segmented").glob("*.txt")) for line in iter_lines(file)]
    if len(lines) < NUM_SENTENCES:
        raise InteropError(f"Error: {run} has {len(lines)} sentences; speed is measured with {NUM_SENTENCES:,}.")
    text.write_bytes(b"".join(lines[:NUM_SENTENCES]))
    racers = [Racer(Path(sys.executable), "ours", bundle, text)]
    for reader in READERS:
        try:
            interpreter = install(reader, getattr(arguments, reader.python))
        except InteropError as error:
            print(f"{reader.program} could not be installed: {error}", flush=True)
            continue
        racers.append(Racer(interpreter, reader.files, folder / reader.layout, text))
    num_tokens = sum(map(len, load_sentences(text)))
    print(f"{NUM_SENTENCES:,} sentences, {num_tokens:,} tokens, {arguments.rounds} times in turns", flush=True)
    for number in range(arguments.rounds):
        for racer in racers:
            racer.race()
            seconds, processor_seconds = racer.times[-1]
            print(f"{number + 1}. {racer.versions}: {seconds:.2f} s, {processor_seconds:.2f} processor s", flush=True)
    for racer in racers:
        racer.stop()
    print_speeds(racers, num_tokens)


def print_speeds(racers: list["Racer"], num_tokens: int) -> None:
    """Print a row for each program; the first one is what the others are compared with."""
    ours = np.array(racers[0].times)
    print(f"{'program':58} {'seconds':>8} {'tokens/s':>9} {'our time x':>10} {'our processor time x':>20}")
    for racer in racers:
        times = np.array(racer.times)
        seconds, (ratio, of_processor) = np.median(times[:, 0]), np.median(times / ours, axis=0)
        print(f"{racer.versions:58} {seconds:8.2f} {num_tokens / seconds:9,.0f} {ratio:10.1f} {of_processor:20.1f}")


def iter_lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


class Racer:
    """A program that has loaded the model and embeds all sentences when it is told to."""

    def __init__(self, interpreter: Path, files: str, model: Path, text: Path) -> None:
        command = [interpreter, HERE / f"read_with_{files}.py", model, text]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=SURROUNDINGS
        )
        self.versions = self._read_line()
        self.times: list[tuple[float, float]] = []  # seconds and processor seconds of each race

    def race(self) -> None:
        assert self._process.stdin
        self._process.stdin.write("again\n")
        self._process.stdin.flush()
        seconds, processor_seconds = map(float, self._read_line().split())
        self.times.append((seconds, processor_seconds))

    def _read_line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise InteropError(self._process.communicate()[1].strip().splitlines()[-1])
        return line.strip()

    def stop(self) -> None:
        self._process.communicate()


if __name__ == "__main__":
    sys.exit(main())
