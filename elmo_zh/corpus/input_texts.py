"""Read texts as numbered lines, for example to embed or search them."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypeVar

import msgspec

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import EXCEL_SUFFIX, UnsuitableError, columns_of_name, suffix_of
from elmo_zh.corpus.counts import READING, SKIPPED, Tally, skipped_lines
from elmo_zh.corpus.read_source import read_files
from elmo_zh.corpus.readers.formats import Record, require_fields
from elmo_zh.corpus.readers.plain import layout_messages
from elmo_zh.corpus.readers.row_texts import WITHOUT_FIELD, other_fields_note
from elmo_zh.corpus.sources import Source, Sources, Stamp, find_sources, spooled_input
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.run.files import file_digest
from elmo_zh.run.reporter import Reporter

Item = TypeVar("Item")


class Member(msgspec.Struct):
    """A member of an archive, and the number of its first line, from 0 across all members."""

    name: str
    first_line: Annotated[int, msgspec.Meta(ge=0)]


class Members(list[Member]):
    """The members of an archive read so far."""

    def place(self, archive: str, line: int) -> tuple[str, int]:
        """Return the file that contains a line, such as texts.zip/old/1.txt, and the line's number there, from 0."""
        # A member without lines begins where the next one does.
        place = bisect_right(self, line, key=attrgetter("first_line")) - 1
        if place < 0:
            return archive, line
        return member_name(archive, self[place].name), line - self[place].first_line

    @classmethod
    def restored(cls, described: object) -> "Members":
        """Restore the members from JSON; raise ValueError if it is not a list of members in order."""
        members = cls(msgspec.convert(described, list[Member]))
        if any(after.first_line < before.first_line for before, after in pairwise(members)):
            raise ValueError("members out of order")
        return members


def member_name(archive: str, member: str) -> str:
    """Return the name that outputs use for a member of an archive, such as texts.zip/old/1.txt."""
    return f"{archive}/{member}"


_PLAIN = ("text", "utf-8", "")


@dataclass(kw_only=True)
class InputText:
    """A text of numbered lines that can be read more than once.

    A line may be a line of plain text, a paragraph or the text of one record. An unreadable line is an error.
    """

    source: Source
    config: TextConfig
    from_name: str | None = None  # Pattern of file names, such as {year}_{author}.txt, that gives all lines columns
    # How the file was last read: formats, encodings, records without text
    tally: Tally = field(default_factory=Tally, init=False)
    # The members of an archive as last read, and where their lines begin
    members: Members = field(default_factory=Members, init=False)
    # The state of the file when it was described or first read, which must not change afterwards
    _stamp: Stamp | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        """Name for use in messages."""
        return self.source.name

    @property
    def reading(self) -> dict[str, str]:
        """Reading settings that are not at their defaults, by name."""
        default = TextConfig()
        names = ("format", "field", "encoding", "join_lines")
        found = {
            name: getattr(self.config, name) for name in names if getattr(self.config, name) != getattr(default, name)
        }
        return found if self.from_name is None else {**found, "from_name": self.from_name}

    def described(self) -> dict[str, Any]:
        """Return name, digest and reading settings; `records` raises CorpusError if the file is changed after this."""
        self._stamp = Stamp.of(self.source)
        return {"name": self.name, "digest": file_digest(self.source.path), "reading": self.reading}

    def records(self, reporter: Reporter | None = None) -> Iterator[Record]:
        """Yield each line with its columns; raise UnsuitableError if the file cannot be read as text."""
        self._stamp = self._stamp or Stamp.of(self.source)
        self._stamp.require(self.source)
        self.tally, self.members = Tally(), Members()
        reported, num_lines = {_PLAIN}, 0
        for member, records in read_files(self.source, self.config, self.tally):
            if member:
                self.members.append(Member(member, num_lines))
            else:
                self._require_fields()
            if reporter is not None:
                for form in self.tally.read_as:
                    if form.key() not in reported:
                        kinds = form.described(is_excel=suffix_of(self.source.file_name) == EXCEL_SUFFIX)
                        reporter.note(_(READING).format(name=self.name, kinds=kinds))
                        reported.add(form.key())
            named = columns_of_name(self.from_name, member or self.source.file_name) if self.from_name else {}
            for record in records:
                num_lines += 1
                yield Record(record.line, {**record.columns, **named}) if named else record
        self._require_fields()
        if reporter is not None:
            self._report_oddities(reporter, num_lines)

    def place(self, line: int) -> tuple[str, int]:
        """Return the name of the file that contains a line, and the line's number there; see `Members.place`."""
        return self.members.place(self.name, line)

    def lines_if_text(self, reporter: Reporter) -> Iterator[str]:
        """Yield the lines; if the file cannot be read as text, warn, or raise the error if the user named it."""
        return (record.line for record in self.records_if_text(reporter))

    def records_if_text(self, reporter: Reporter) -> Iterator[Record]:
        """Yield the records; if the file cannot be read as text, warn, or raise the error if the user named it."""
        return self.if_text(self.records(reporter), reporter)

    def if_text(self, items: Iterable[Item], reporter: Reporter) -> Iterator[Item]:
        """Yield items read from the file; if it is not text, warn, or raise the error if the user named it."""
        try:
            yield from items
        except UnsuitableError as error:
            self.skip(error, reporter)

    def skip(self, error: UnsuitableError, reporter: Reporter) -> None:
        """Warn that the file is skipped, or raise the error if the user named it."""
        if self.source.is_named:
            raise error
        reporter.warn(_(SKIPPED).format(reason=_(error.reason), names=self.name))

    def _require_fields(self) -> None:
        """Raise CorpusError if the user asked for a field and named this file, but it has no fields."""
        if self.source.is_named:
            require_fields(self.config.field, [self.name], self.tally.read_as)

    def _report_oddities(self, reporter: Reporter, num_lines: int) -> None:
        if not self.tally.read_as:
            reporter.note(str(CorpusError.no_text(self.name)))
        if self.tally.other_fields:
            reporter.note(other_fields_note(self.tally.other_fields))
        # Whether words are to be divided again depends on the model's segmenter.
        layouts = {layout: example for layout, example in self.tally.layouts.items() if layout != "words"}
        for message in layout_messages([(self.name, layouts)]):
            reporter.warn(message)
        if num_empty := self.tally.num_dropped(WITHOUT_FIELD):
            tell = reporter.warn if num_empty * 2 > num_lines else reporter.note
            tell(
                _(
                    "{name}: records without the chosen field become empty lines ({count:,} of {total:,}). To choose"
                    " other fields: --field NAME"
                ).format(name=self.name, count=num_empty, total=num_lines)
            )
        for line in skipped_lines(self.tally.passed_over):
            reporter.note(line)


def input_text(
    source: Source, config: TextConfig, *, segmented: bool = False, from_name: str | None = None
) -> InputText:
    """Return a source as a text to read; segmented text is always plain text, whatever its file name."""
    plain = replace(config, format="text", field="") if segmented else config
    return InputText(source=source, config=plain, from_name=from_name)


@contextmanager
def opened_inputs(arguments: Sequence[str], reporter: Reporter) -> Iterator[Sources]:
    """Find the sources that arguments name; a lone - is standard input, which is kept until the block ends."""
    if list(arguments) != ["-"]:
        sources = find_sources(arguments)
        sources.report_skipped(reporter)
        yield sources
        return
    with TemporaryDirectory(prefix="elmo-zh-") as folder:
        yield Sources(sources=(spooled_input(Path(folder, "stdin"), "stdin"),))
