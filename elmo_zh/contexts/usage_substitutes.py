"""Find substitutes that tell the usages of a word apart."""

from collections import Counter
from collections.abc import Iterator, Sequence

from elmo_zh.contexts.keyword_lines import NeighbourLine
from elmo_zh.contexts.senses import Senses
from elmo_zh.embed.embedder import ElmoEmbedder

# Occurrences of a usage, the nearest to its centre, whose substitutes are found; and how many of each.
_NUM_OCCURRENCES, _NUM_EACH = 20, 20


def usage_substitutes(embedder: ElmoEmbedder, senses: Senses, *, segmented: bool, top: int = 10) -> list[list[str]]:
    """Return the substitutes that are most telling for each usage of a word.

    A substitute is scored by the share of the usage's 20 occurrences nearest to its centre of which it is among the 20
    best, minus the largest share in another usage. Of equal ones that with the better mean rank comes first.
    The word itself is left out.

    Args:
        embedder: The model that computed the index.
        senses: The usages.
        segmented: The lines of the index are segmented.
        top: How many to return, at most.

    Returns:
        For each usage its substitutes, the most telling first.

    Raises:
        BundleError: If the bundle has no softmax.
    """
    shares, ranks = [], []
    for usage in senses.usages:
        places = list(_places(embedder, usage.nearest[:_NUM_OCCURRENCES], segmented=segmented))
        share: Counter[str] = Counter()
        rank: Counter[str] = Counter()
        for found in embedder.substitutes_many(places, _NUM_EACH + 1):
            for number, word in enumerate(found.words[:_NUM_EACH]):
                share[word] += 1
                rank[word] += number - _NUM_EACH
        shares.append({word: count / len(places) for word, count in share.items()})
        ranks.append(rank)
    return [_telling(shares, rank, usage)[:top] for usage, rank in enumerate(ranks)]


def _telling(shares: Sequence[dict[str, float]], rank: Counter[str], usage: int) -> list[str]:
    """Return the substitutes of a usage, the most telling first."""
    others = [share for number, share in enumerate(shares) if number != usage]

    def score(word: str) -> tuple[float, int, str]:
        lead = shares[usage][word] - max((share.get(word, 0.0) for share in others), default=0.0)
        return -round(lead, 6), rank[word], word

    return sorted(shares[usage], key=score)


def _places(
    embedder: ElmoEmbedder, lines: Sequence[NeighbourLine], *, segmented: bool
) -> Iterator[tuple[list[str], int]]:
    """Yield the tokens of the lines and the positions of the occurrences in them."""
    for each in lines:
        occurrence = each.neighbour.occurrence
        yield embedder.prepare(each.line.text, segmented=segmented).tokens, occurrence.token
