"""Speed and quality of the word2vec implementations on the text of a run.

Usage: python benchmarks/word2vec.py RUN [--every N] [--implementation gensim|torch] [--algorithm cbow|skipgram]
           [--dimension P] [--epochs N] [--seed N] [--similarity FILE...]

RUN has been segmented and has a vocabulary. Of its training text every N-th sentence is taken. Prints one JSON object:
seconds and processor seconds of training, and Spearman's correlation with people's judgement of similarity (lines of
"word TAB word TAB score"). Pairs with a word outside the vocabulary are left out. All files may be compressed.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from elmo_zh.config import Word2vecConfig
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.vocabulary.vocabulary import load_counts, load_vocabulary
from elmo_zh.word2vec import train_word2vec
from elmo_zh.word2vec.vectors import TrainingJob

Array = np.ndarray[Any, Any]


def thin_out(files: list[Path], every: int, path: Path) -> int:
    """Write every N-th sentence of segmented files to one; return its number of tokens."""
    num_tokens = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for source in files:
            for number, line in enumerate(iter_lines(source, drop_mark=False)):
                if number % every == 0:
                    file.write(f"{line}\n")
                    num_tokens += line.count(" ") + 1
    return num_tokens


def similarity(path: Path, rows: dict[str, int], vectors: Array) -> dict[str, Any]:
    found, judged, num_pairs = [], [], 0
    for line in iter_lines(path):
        one, other, score = line.split()
        num_pairs += 1
        if one in rows and other in rows:
            found.append(float(vectors[rows[one]] @ vectors[rows[other]]))
            judged.append(float(score))
    spearman = float(spearmanr(found, judged).statistic)
    return {"spearman": round(spearman, 4), "pairs": len(found), "of": num_pairs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--implementation", default="torch", choices=("gensim", "torch"))
    parser.add_argument("--algorithm", default="cbow", choices=("cbow", "skipgram"))
    parser.add_argument("--dimension", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--similarity", type=Path, nargs="*", default=[])
    arguments = parser.parse_args()
    run = RunDir(arguments.run)
    vocabulary = load_vocabulary(run.vocab)
    counts = load_counts(run.vocab_counts, vocabulary)
    names = ("implementation", "algorithm", "epochs", "seed")
    config = Word2vecConfig(**{name: getattr(arguments, name) for name in names})
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "train.txt"
        num_tokens = thin_out(run.train_files(), arguments.every, text)
        started_at, processor_before = time.perf_counter(), time.process_time()
        job = TrainingJob(
            files=[text], vocabulary=vocabulary, counts=counts, dimension=arguments.dimension, config=config
        )
        trained = train_word2vec(job, SilentReporter())
        seconds, processor_seconds = time.perf_counter() - started_at, time.process_time() - processor_before
    vectors = trained.vectors / np.linalg.norm(trained.vectors, axis=1, keepdims=True)
    rows = {vocabulary.tokens[row]: number for number, row in enumerate(trained.rows)}
    figures: dict[str, Any] = {name: getattr(arguments, name) for name in (*names, "dimension")}
    figures |= {
        "tokens": num_tokens,
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor_seconds, 1),
        "processor_microseconds_per_token": round(1e6 * processor_seconds / num_tokens / arguments.epochs, 2),
    }
    figures |= {path.name: similarity(path, rows, vectors) for path in arguments.similarity}
    print(json.dumps(figures, ensure_ascii=False))


if __name__ == "__main__":
    main()
