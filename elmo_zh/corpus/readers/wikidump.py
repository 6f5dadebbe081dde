"""Read the prose of each article in a MediaWiki XML dump (pages-articles)."""

import re
from collections.abc import Iterator
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import UnsuitableError, import_extra
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.readers.formats import CorpusFormat, Documents
from elmo_zh.corpus.readers.wikitext import wikitext_lines
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _

# MediaWiki limits pages to 2 MiB; some wikis allow more.
LONGEST_PAGE_BYTES = 2**26
# Old dumps have no element for redirects.
_REDIRECT = re.compile(r"\s*#\s*(?:redirect|重定向|重新导向|重新導向)\s*:?\s*\[\[", re.IGNORECASE)


def read_wikidump(text: DecodedText, _config: TextConfig, tally: Tally, passed_over: PassedOver) -> Documents:
    """Yield each article as a document, skipping redirects, other namespaces and pages without wikitext."""
    for page in _pages(text):
        title = page.findtext("{*}title") or "(no title)"
        reason = _reason_to_pass_over(page)
        if reason:
            passed_over.add(reason, title)
        else:
            source = page.findtext("{*}revision/{*}text") or ""
            yield wikitext_lines(source, tally)


def _reason_to_pass_over(page: Any) -> str:
    if (page.findtext("{*}ns") or "0").strip() != "0":
        return N_("wiki pages outside the main namespace")
    if page.find("{*}redirect") is not None or _REDIRECT.match(page.findtext("{*}revision/{*}text") or ""):
        return N_("redirect pages")
    if (page.findtext("{*}revision/{*}model") or "wikitext").strip() != "wikitext":
        return N_("wiki pages that are not wikitext")
    return ""


def _pages(text: DecodedText) -> Iterator[Any]:
    etree = import_extra("lxml.etree", f"{text.name}: a MediaWiki dump")
    # Nothing is fetched, no entity is expanded, and libxml2's own limits on depth and text length stay on.
    parser = etree.XMLPullParser(
        ("start", "end"), resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, encoding="utf-8"
    )
    is_first = True
    num_bytes = 0
    try:
        for chunk in text.chunks():
            data = chunk.encode("utf-8", "replace")
            num_bytes += len(data)
            parser.feed(data)
            for event, element in parser.read_events():
                if is_first:
                    _require_dump(text, element)
                    import_extra("wikitextparser", f"{text.name}: a MediaWiki dump")
                    is_first = False
                if event == "end" and _local_name(element) == "page":
                    num_bytes = 0
                    yield element
                    _forget(element)
            if num_bytes > LONGEST_PAGE_BYTES:
                raise CorpusError(
                    _(
                        "{name}: a page is longer than MediaWiki allows. Check that the file is a MediaWiki dump."
                    ).format(name=text.name)
                )
        parser.close()
    except etree.XMLSyntaxError as error:
        raise UnsuitableError(
            text.name,
            N_("damaged or truncated XML"),
            _("Download it again, or read it as plain text: --input-format text"),
            " ".join(str(error).split())[:100],
        ) from None


def _require_dump(text: DecodedText, root: Any) -> None:
    if root.getroottree().docinfo.internalDTD is not None:
        raise CorpusError(
            _("{name} contains <!DOCTYPE ...>, which MediaWiki dumps do not have. Give another file.").format(
                name=text.name
            )
        )
    if _local_name(root) != "mediawiki":
        raise UnsuitableError(
            text.name,
            N_("XML, but not a MediaWiki dump"),
            _("Convert other XML to text or HTML."),
        )


def _local_name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _forget(element: Any) -> None:
    """Free an element and its earlier siblings, which the tree would otherwise keep in memory."""
    element.clear()
    while element.getprevious() is not None:
        del element.getparent()[0]


def _starts_as_dump(head: str) -> bool:
    start = head.lstrip()
    return start.startswith("<mediawiki") or (start.startswith("<?xml") and "<mediawiki" in head[:2000])


FORMAT = CorpusFormat(
    read=read_wikidump, title=N_("MediaWiki dump"), has_fields=False, suffixes=(".xml",), starts=_starts_as_dump
)
