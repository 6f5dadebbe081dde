"""The word2vec stage: make the initial token embeddings, from segmented text or a file of vectors."""

from pathlib import Path

from elmo_zh.language import _
from elmo_zh.run.files import remove, require_no_input
from elmo_zh.run.record import StageContext, StageOutcome, StageResult, run_stage
from elmo_zh.run.reporter import counted
from elmo_zh.run.stage_table import WORD2VEC
from elmo_zh.text.entries import Entries
from elmo_zh.text.normalise import build_normaliser
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, load_counts, load_vocabulary
from elmo_zh.word2vec.given_vectors import read_given_vectors
from elmo_zh.word2vec.implementations import choose_epochs, chosen_implementation, train_word2vec
from elmo_zh.word2vec.vectors import WordVectors, has_spread, save_word_vectors

# With vectors for fewer words, the rest of the table would be drawn around a few accidental rows.
_LEAST_COVERAGE = 0.05


def word2vec(context: StageContext) -> StageOutcome:
    """Run the word2vec stage: write vectors for the vocabulary to word2vec.txt, trained or from a given file."""
    run, config, reporter = context.run, context.config, context.reporter
    dimension = config.model.projection_dim
    source = Path(config.word2vec.vectors) if config.word2vec.vectors else None
    if source:
        require_no_input(run.word2vec, [source], _("Copy the file elsewhere, and use the copy."))

    def work() -> StageResult:
        vocabulary = load_vocabulary(run.vocab)
        if not config.word2vec.enabled:
            remove(run.word2vec)
            reporter.note(_("word2vec: turned off; token embeddings will start at random."))
            return StageResult(outputs=[])
        counts = load_counts(run.vocab_counts, vocabulary)
        if source:
            entries = Entries(source, build_normaliser(config.text))
            vectors = read_given_vectors(entries, vocabulary, dimension)
            entries.report(reporter)
        else:
            vectors = train_word2vec(run.train_files(), vocabulary, counts, dimension, config.word2vec, reporter)
        num_covered, num_words = len(vectors.rows), len(vocabulary) - len(SPECIALS)
        by_gensim = not source and chosen_implementation(config.word2vec) == "gensim"
        training = choose_epochs(config.word2vec, sum(counts[UNKNOWN_ID:]))
        epochs = counted(training.epochs, "{number} epoch", "{number} epochs")
        trained = f"{training.algorithm}, {epochs}{'' if by_gensim else ', torch'}"
        origin = _("from {name}").format(name=source.name) if source else trained
        reporter.note(
            _(
                "word2vec: {dimension}-dimensional vectors for {num_covered} of {num_words} words ({value}), {origin}."
            ).format(
                dimension=dimension,
                num_covered=f"{num_covered:,}",
                num_words=f"{num_words:,}",
                value=f"{num_covered / num_words:.2%}",
                origin=origin,
            )
        )
        if source and not _can_start_from(vectors, num_words):
            reporter.warn(
                _(
                    "Too few words have vectors, or all of these are alike, so the token embeddings start at random."
                    " Do {source} and the text use the same language and script?"
                ).format(source=source)
            )
            vectors = WordVectors(rows=vectors.rows[:0], vectors=vectors.vectors[:0])
        save_word_vectors(run.word2vec, vocabulary, vectors)
        reproducible = not by_gensim or config.word2vec.num_workers == 1
        if not reproducible:
            reporter.warn(_("word2vec.num_workers is above 1, so these vectors cannot be reproduced exactly."))
        return StageResult(outputs=[run.word2vec], counts={"covered": len(vectors.rows), "reproducible": reproducible})

    return run_stage(WORD2VEC, context, work, files={"vectors": source} if source else {})


def _can_start_from(vectors: WordVectors, num_words: int) -> bool:
    return len(vectors.rows) >= _LEAST_COVERAGE * num_words and has_spread(vectors.vectors)
