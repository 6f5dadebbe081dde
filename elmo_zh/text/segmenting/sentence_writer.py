"""Files of segmented sentences."""

from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import numpy as np

from elmo_zh.files import written_once
from elmo_zh.text.heldout import Paragraph


class SentenceWriter:
    """Writes sentences to a file, and counts them in all and for each document."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._in_document = 0
        self._documents = array("I")
        self.num_sentences = self.num_tokens = 0

    def __enter__(self) -> "SentenceWriter":
        self._file: TextIO = self.path.open("w", encoding="utf-8", newline="\n")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, paragraph: Paragraph) -> None:
        """Write a paragraph of the document at hand."""
        self._file.write("\n".join(paragraph.sentences) + "\n")
        self._in_document += len(paragraph.sentences)
        self.num_sentences += len(paragraph.sentences)
        self.num_tokens += paragraph.num_tokens

    def write_apart(self, paragraphs: Iterable[Paragraph]) -> None:
        """Write paragraphs, each as a document of its own."""
        for paragraph in paragraphs:
            self.write(paragraph)
            self.end_document()

    def end_document(self) -> None:
        """Say that what comes next is of another document."""
        if self._in_document:
            self._documents.append(self._in_document)
            self._in_document = 0

    def save_documents(self, path: Path) -> None:
        """Write the number of sentences of each document, little-endian uint32."""
        with written_once(path) as unfinished:
            unfinished.write_bytes(np.asarray(self._documents, "<u4").tobytes())
