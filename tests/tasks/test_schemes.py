"""Tags and the spans that they mark: by hand, against seqeval, and back and forth."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages import message_of

from elmo_zh.corpus.readers.examples import detect_scheme, may_follow, spans_of, tags_of
from elmo_zh.errors import CorpusError

SPANS = [(0, 1, "A"), (1, 4, "B"), (5, 7, "A")]
TAGS = {
    "BIO": ["B-A", "B-B", "I-B", "I-B", "O", "B-A", "I-A", "O"],
    "BMES": ["S-A", "B-B", "M-B", "E-B", "O", "B-A", "E-A", "O"],
    "BIOES": ["S-A", "B-B", "I-B", "E-B", "O", "B-A", "E-A", "O"],
}


@pytest.mark.parametrize("scheme", TAGS)
def test_spans_by_hand(scheme: str) -> None:
    assert tags_of(SPANS, 8, scheme) == TAGS[scheme]
    assert spans_of(TAGS[scheme]) == (SPANS, 0)


@pytest.mark.parametrize("scheme", TAGS)
@given(lengths=st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["", "A", "B"]), st.integers(0, 2))))
def test_spans_survive_their_tags(scheme: str, lengths: list[tuple[int, str, int]]) -> None:
    spans, place = [], 0
    for length, kind, gap in lengths:
        spans.append((place, place + length, kind))
        place += length + gap
    tags = tags_of(spans, place, scheme)
    assert spans_of(tags) == (spans, 0)
    for tag, following in zip(["", *tags], [*tags, ""], strict=True):
        assert scheme != "BIOES" or may_follow(tag, following)


@pytest.mark.parametrize("letters", ["BIO", "BIOES"])
def test_any_tags_are_read_as_seqeval_reads_them(letters: str) -> None:
    """Also those that do not fit together: all sequences of four tags of two types."""
    entities = pytest.importorskip("seqeval.scheme")
    strict = {"BIO": entities.IOB2, "BIOES": entities.IOBES}[letters]
    tags = ["O", *(f"{letter}-{kind}" for letter in letters.replace("O", "") for kind in "XY")]
    for sequence in product(tags, repeat=4):
        spans, num_wrong = spans_of(sequence)
        found = entities.Entities([list(sequence)], strict).entities[0]
        expected = [(entity.start, entity.end, entity.tag) for entity in found]
        if num_wrong == 0 and tags_of(spans, 4, letters) == list(sequence):
            assert spans == expected, sequence
        else:
            # The strict reading leaves out what does not fit; ours is conlleval's, which keeps it.
            assert set(expected) <= {*spans}, sequence


def test_conlleval_reads_what_does_not_fit_as_a_start() -> None:
    assert spans_of(["I-X", "I-X", "I-Y", "O", "B-X", "I-Y"]) == (
        [(0, 2, "X"), (2, 3, "Y"), (4, 5, "X"), (5, 6, "Y")],
        3,
    )


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["O", "B-PER", "I-PER"], "BIO"),
        (["B_PER", "M_PER", "E_PER", "S_PER"], "BMES"),
        (["B-PER", "I-PER", "E-PER"], "BIOES"),
        (["B", "M", "E", "S"], "BMES"),
        (["B", "I", "O"], "BIO"),
        (["NOUN", "VERB", "O"], ""),
        (["NN", "S-X", "E"], ""),
        (["O"], ""),
        (["O", "S-X"], "BMES"),
    ],
)
def test_the_scheme_is_found(tags: list[str], scheme: str) -> None:
    assert detect_scheme(tags, "a.conll") == scheme


@pytest.mark.parametrize("tags", [["B-PER", "X-PER"], ["B-PER", "M-PER", "I-PER"]])
def test_tags_of_no_scheme(tags: list[str]) -> None:
    told = message_of(CorpusError, lambda: detect_scheme(tags, "a.conll"))
    assert told.endswith("; expected BIO, BMES, BIOES.")
    assert tags[1] in told
