"""The sheets of an Excel file (.xlsx), each as a table in CSV, for the readers of tables."""

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any, BinaryIO, cast

from elmo_zh.corpus.content import Content, UnsuitableError, import_extra
from elmo_zh.corpus.names import shown
from elmo_zh.errors import CorpusError

# The member of the zip archive that only this kind of office document has.
EXCEL_MEMBER = "xl/workbook.xml"
# The strings of a file are read into memory.
_MOST_BYTES = 2**28
# openpyxl makes a cell for each empty one before the last.
_MOST_COLUMNS = 1000


def excel_tables(packed: BinaryIO, name: str, unpacked_bytes: int) -> Iterator[Content]:
    """Yield the sheets of a file that hold cells; each can be read until the next one is requested."""
    if unpacked_bytes > _MOST_BYTES:
        advice = "Save its sheets as CSV and give those files."
        raise UnsuitableError(name, f"an Excel file of more than {_MOST_BYTES // 2**20} MB when unpacked", advice)
    openpyxl = import_extra("openpyxl", f"{name}, an Excel file,")
    try:
        packed.seek(0)
        book = openpyxl.load_workbook(packed, read_only=True, data_only=True)
        sheets = book.worksheets
        for sheet in sheets:
            with TemporaryFile() as table:
                if _write_table(sheet, cast(BinaryIO, table)):
                    yield _content(cast(BinaryIO, table), name, shown(sheet.title) if len(sheets) > 1 else "")
    except (CorpusError, OSError):
        raise
    except Exception as error:
        # openpyxl checks little, so a damaged file raises whatever its parts lead to.
        raise CorpusError(f"{name} is a damaged Excel file ({error!r:.200}). Save it again, or as CSV.") from None


def _write_table(sheet: Any, table: BinaryIO) -> bool:
    """Write the rows of a sheet that are not blank as CSV, and return whether there are any."""
    # A file may claim any size.
    sheet.reset_dimensions()
    text = io.TextIOWrapper(table, "utf-8", errors="surrogatepass", newline="", write_through=True)
    rows = None
    for row in sheet.iter_rows(values_only=True):
        cells = ["" if value is None else str(value) for value in row[:_MOST_COLUMNS]]
        if not any(cells):
            continue
        if rows is None:
            # The reader takes the sign that is most frequent in the first line.
            sign = max(",;\t|", key="".join(cells).partition("\n")[0].count)
            rows = csv.writer(text, delimiter=sign, quoting=csv.QUOTE_ALL, lineterminator="\n")
        rows.writerow(cells)
    text.detach()
    return rows is not None


def _content(table: BinaryIO, name: str, sheet: str) -> Content:
    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        table.seek(0)
        yield table

    own_name = f"{name}: {sheet}" if sheet else name
    return Content(name=own_name, file_name=f"{sheet or 'sheet'}.csv", open=opened, is_named=False, member=sheet)
