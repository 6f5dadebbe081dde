"""jieba's hidden Markov model in fewer steps: finds words in runs of characters that are not in the dictionary.

The words are those of `jieba.finalseg.cut` (jieba 0.42.1). Its four states are B, M and E, the beginning, middle and
end of a word, and S, a word of one character. Terms are added in the same order, and of equal sums the state with the
higher letter wins, so ties are resolved the same way.
"""

from collections.abc import Collection, Iterator


class NewWords:
    """Finder of words in a run of characters.

    Args:
        never_found: Words that are split into characters again.
    """

    def __init__(self, never_found: Collection[str] = ()) -> None:
        from jieba import finalseg

        self._never_found = frozenset(never_found)
        self._han, self._latin = finalseg.re_han, finalseg.re_skip
        self._least = least = finalseg.MIN_FLOAT
        self._emitted = [finalseg.emit_P[state] for state in "BMES"]
        self._first = [finalseg.start_P[state] for state in "BMES"]
        # Possible transitions: from B and M to E and M, from E and S to B and S.
        moves = ("BE", "BM", "ME", "MM", "EB", "ES", "SB", "SS")
        self._moves = [finalseg.trans_P[move[0]].get(move[1], least) for move in moves]

    def __call__(self, run: str) -> tuple[str, ...]:
        """Return the words."""
        return tuple(self._iter_words(run))

    def _iter_words(self, run: str) -> Iterator[str]:
        # The pattern is a group, so runs of Han characters have odd indices.
        for number, part in enumerate(self._han.split(run)):
            if number % 2:
                yield from self._words_of_run(part)
            else:
                yield from filter(None, self._latin.split(part))

    def _words_of_run(self, run: str) -> Iterator[str]:
        start = 0
        for end in self._word_ends(run):
            word = run[start:end]
            if word in self._never_found:
                yield from word
            else:
                yield word
            start = end

    def _word_ends(self, run: str) -> list[int]:
        """Return the ends of the words on the most likely path through a run."""
        least = self._least
        begins, middles, ends, singles = self._emitted
        be, bm, me, mm, eb, es, sb, ss = self._moves
        b, m, e, s = (start + some.get(run[0], least) for start, some in zip(self._first, self._emitted, strict=True))
        # For each position: whether B came from S, M from M, E from M and S from S.
        came: list[tuple[bool, bool, bool, bool]] = []
        for character in run[1:]:
            emitted_b, emitted_m = begins.get(character, least), middles.get(character, least)
            emitted_e, emitted_s = ends.get(character, least), singles.get(character, least)
            b_from_e, b_from_s = e + eb + emitted_b, s + sb + emitted_b
            m_from_b, m_from_m = b + bm + emitted_m, m + mm + emitted_m
            e_from_b, e_from_m = b + be + emitted_e, m + me + emitted_e
            s_from_e, s_from_s = e + es + emitted_s, s + ss + emitted_s
            steps = b_from_s >= b_from_e, m_from_m >= m_from_b, e_from_m >= e_from_b, s_from_s >= s_from_e
            came.append(steps)
            b = b_from_s if steps[0] else b_from_e
            m = m_from_m if steps[1] else m_from_b
            e = e_from_m if steps[2] else e_from_b
            s = s_from_s if steps[3] else s_from_e
        return _follow_back(came, "S" if s >= e else "E")


def _follow_back(came: list[tuple[bool, bool, bool, bool]], state: str) -> list[int]:
    """Return the index after each word, from the last state and the predecessor of each state."""
    ends = []
    for place in range(len(came), -1, -1):
        if state in "ES":
            ends.append(place + 1)
        if place:
            b_from_s, m_from_m, e_from_m, s_from_s = came[place - 1]
            if state in "BS":
                state = "S" if (b_from_s if state == "B" else s_from_s) else "E"
            else:
                state = "M" if (m_from_m if state == "M" else e_from_m) else "B"
    return ends[::-1]
