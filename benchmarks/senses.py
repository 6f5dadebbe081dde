"""Do a model's vectors tell the senses of a word apart? Measured on the marked words of data/senses.tsv.

Usage: python benchmarks/senses.py BUNDLE

For each layer: the mean cosine of two occurrences of a word in one sense and in two, and how often the nearest other
occurrence of the word (by cosine) has the same sense, beside how often chance would hit it. The token layer gives all
occurrences one vector, so it knows nothing. The marked sentences are the sample's own: a model trained on the sample
has read them, though without the marks; one trained on other text has not.
"""

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh import ElmoEmbedder
from elmo_zh.text.sentences import split_sentences

DATA = Path(__file__).parent.parent / "data"


def marked_sentence(mark: dict[str, str]) -> tuple[str, int]:
    """Return the sentence that a mark stands in, and how many characters stand before the word in it."""
    paragraph = (DATA / "sample" / mark["file"]).read_text(encoding="utf-8").split("\n")[int(mark["line"])]
    place = 0
    for sentence in split_sentences(paragraph):
        if place <= int(mark["start"]) < place + len(sentence):
            return sentence, int(mark["start"]) - place
        place += len(sentence)
    raise ValueError(f"no sentence at {mark}")


def token_index(tokens: list[str], sentence: str, start: int) -> int:
    """Return which token begins after `start` characters of the sentence, spaces not counted."""
    wanted = len(sentence[:start].replace(" ", ""))
    begins = np.cumsum([0, *(len(token) for token in tokens)])
    return int(np.flatnonzero(begins == wanted)[0])


def load_occurrences(embedder: ElmoEmbedder) -> dict[str, list[tuple[str, NDArray[np.float32]]]]:
    """Return, for each word, the sense and the vectors (L + 1, 2P) of each marked occurrence."""
    with (DATA / "senses.tsv").open(encoding="utf-8", newline="") as file:
        marks = list(csv.DictReader(file, delimiter="\t"))
    places = [marked_sentence(mark) for mark in marks]
    tokens = [embedder.tokens(sentence) for sentence, _ in places]
    occurrences = defaultdict(list)
    for mark, (sentence, start), words, vectors in zip(
        marks, places, tokens, embedder.embed_tokens(tokens), strict=True
    ):
        index = token_index(words, sentence, start)
        if words[index] == mark["word"]:
            occurrences[mark["word"]].append((mark["sense"], vectors[:, index]))
    return occurrences


def compare(senses: list[str], vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return mean cosine within senses, across senses, nearest-neighbour accuracy and the accuracy of chance."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    same = np.equal.outer(senses, senses)
    other = ~np.eye(len(senses), dtype=np.bool_)
    nearest = np.where(other, cosine, -np.inf).argmax(axis=1)
    hits = same[np.arange(len(senses)), nearest].mean()
    return np.array([cosine[same & other].mean(), cosine[~same].mean(), hits, same[other].mean()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bundle", metavar="BUNDLE", help="folder of the model, such as runs/latest/model")
    embedder = ElmoEmbedder.load(parser.parse_args().bundle)
    occurrences = load_occurrences(embedder)
    print(f"{'word':6} layer  one sense  two senses  nearest  chance")
    totals = defaultdict(list)
    for word, found in sorted(occurrences.items()):
        senses = [sense for sense, _ in found]
        for layer in range(1, embedder.num_layers):
            figures = compare(senses, np.stack([vectors[layer] for _, vectors in found]))
            totals[layer].append(figures)
            print(f"{word:6} {layer:5}  {figures[0]:9.3f}  {figures[1]:10.3f}  {figures[2]:7.2f}  {figures[3]:6.2f}")
    for layer, rows in totals.items():
        mean = np.mean(rows, axis=0)
        print(f"{'mean':6} {layer:5}  {mean[0]:9.3f}  {mean[1]:10.3f}  {mean[2]:7.2f}  {mean[3]:6.2f}")


if __name__ == "__main__":
    main()
