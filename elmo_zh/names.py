"""The names of values and columns as people see them; JSON and table files keep names such as empty_lines."""

from elmo_zh.language import _

# All that have a translation; the names of settings, of measures such as f1, and of a user's labels have none.
NAMES = (
    """
absent words, accuracy, address, backed off tokens, backward perplexity, backward probability, baseline, bits per
character, by, bytes, carry state, changed words, characters, checkpoint step, columns, compared words, corpus,
count, counts, coverage, covered, cut tokens, date, dev examples, dictionary, digest, dimension, dispersion, distinct
words, empty lines, entropy, epochs, excess, expected, files, finished at, forward perplexity, forward probability,
given words, heldout, heldout sentences, heldout set, heldout tokens, heldout unknown, high, history, kept, kept
characters, kept lines, kind, labels, layer, lines, log likelihood, log ratio, low, members, missing words, mode,
model, model digest, name, near copies heldout, new, new count, num predictions, num sources, occurrences, old, old
count, oov rate, options, origin, other count, other per million, output, pairs, parameters, part, path, per million,
perplexity, picture, precision, probability, program, query, rank, refused words, repeated, right, right by
perplexity, right by slln lp, rows, run, scores, segmenter, sentences, settings, shared words, shown, sizes, softmax,
started at, started from, step, steps, test examples, text, texts, tied softmax, together, tokens, train examples,
train sentences, train tokens, train unknown, trained at, training, training seconds, unknown, unknown tokens,
unknown words, usage, version, vocabulary, warm state, word, words
""".replace("\n", " ")
    .strip()
    .split(", ")
)


def label(name: str) -> str:
    """Return the name of a value or a column in the user's language; in English, its name in JSON."""
    words = name.replace("_", " ")
    shown = _(words) if words in NAMES else words
    return name if shown == words else shown
