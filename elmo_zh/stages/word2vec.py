"""The word2vec stage: make the initial token embeddings, from segmented text or a file of vectors."""

from pathlib import Path

from elmo_zh.errors import RunError
from elmo_zh.run.files import remove, require_no_input
from elmo_zh.run.record import StageContext, StageOutcome, StageResult, run_stage
from elmo_zh.run.reporter import counted
from elmo_zh.run.stage_table import WORD2VEC
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, load_counts, load_vocabulary
from elmo_zh.word2vec.implementations import choose_epochs, chosen_implementation, train_word2vec
from elmo_zh.word2vec.vectors import load_word_vectors, save_word_vectors


def word2vec(context: StageContext) -> StageOutcome:
    """Run the word2vec stage: write vectors for the vocabulary to word2vec.txt, trained or from a given file."""
    run, config, reporter = context.run, context.config, context.reporter
    dimension = config.model.projection_dim
    source = Path(config.word2vec.vectors) if config.word2vec.vectors else None
    if source:
        require_no_input(run.word2vec, [source], "Copy the file elsewhere, and use the copy.")

    def work() -> StageResult:
        vocabulary = load_vocabulary(run.vocab)
        if not config.word2vec.enabled:
            remove(run.word2vec)
            reporter.note("word2vec: turned off; token embeddings will start at random.")
            return StageResult(outputs=[])
        counts = load_counts(run.vocab_counts, vocabulary)
        if source:
            vectors = load_word_vectors(source, vocabulary, dimension)
        else:
            vectors = train_word2vec(run.train_files(), vocabulary, counts, dimension, config.word2vec, reporter)
        num_covered, num_words = len(vectors.rows), len(vocabulary) - len(SPECIALS)
        if not num_covered:
            raise RunError(f"{source} and {run.vocab} share no word. Do both use the same language and script?")
        save_word_vectors(run.word2vec, vocabulary, vectors)
        by_gensim = not source and chosen_implementation(config.word2vec) == "gensim"
        training = choose_epochs(config.word2vec, sum(counts[UNKNOWN_ID:]))
        trained = f"{training.algorithm}, {counted(training.epochs, 'epoch')}{'' if by_gensim else ', torch'}"
        origin = f"from {source.name}" if source else trained
        reporter.note(
            f"word2vec: {dimension}-dimensional vectors for {num_covered:,} of {num_words:,} words"
            f" ({num_covered / num_words:.2%}), {origin}."
        )
        reproducible = not by_gensim or config.word2vec.num_workers == 1
        if not reproducible:
            reporter.warn("word2vec.num_workers is above 1, so these vectors cannot be reproduced exactly.")
        return StageResult(outputs=[run.word2vec], counts={"covered": num_covered, "reproducible": reproducible})

    return run_stage(WORD2VEC, context, work, files={"vectors": source} if source else {})
