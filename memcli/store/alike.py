"""Texts that resemble each other, found without comparing all with all.

Two texts are compared where they share a word that few texts hold, or where they hold the same words. The work grows
with the number of texts and has a ceiling; what it misses are resemblances without one telling word in common.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from rapidfuzz import fuzz

from memcli.store.views import terms

RARE_WORDS = 3
"""How many of a text's rarest words lead to the texts that it is compared with."""

FEW = 40
"""Texts that may share a word before it stops telling them apart."""

MOST_COMPARISONS = 500_000
"""Pairs that are looked at in one search for near duplicates."""


class Alike:
    """Resemblance among texts by number; a higher number is a newer text."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._texts = {number: text.casefold() for number, text in sorted(texts.items())}
        self._words = {number: tuple(dict.fromkeys(terms(text))) for number, text in self._texts.items()}
        self._sorted = {number: " ".join(sorted(words)) for number, words in self._words.items()}
        self._holding: dict[str, list[int]] = {}
        self._same: dict[str, list[int]] = {}
        for number, words in self._words.items():
            self._same.setdefault(self._sorted[number], []).append(number)
            for word in words:
                self._holding.setdefault(word, []).append(number)

    def like(self, text: str, *, least: float, but: Collection[int] = ()) -> list[tuple[int, float]]:
        """Return numbers of texts that resemble a text, with their scores from `least` to 100, most alike first.

        The score is rapidfuzz's WRatio: a short text inside a longer one resembles it.
        """
        folded = text.casefold()
        words = tuple(dict.fromkeys(terms(folded)))
        scores = [
            (number, fuzz.WRatio(folded, self._texts[number], score_cutoff=least))
            for number in self._candidates(words, common=True)
            if number not in but
        ]
        return sorted((found for found in scores if found[1]), key=lambda found: (-found[1], found[0]))

    def pairs(self, numbers: Sequence[int], *, least: float) -> Iterator[tuple[int, int, float]]:
        """Yield pairs (newer, older, score) of texts that say the same in almost the same words.

        The score is the likeness of the sorted words, so that their order does not count. Texts with different
        numbers in them are no pair: a digit is what such statements differ by.
        """
        allowed = set(numbers)
        left = MOST_COMPARISONS
        for number in sorted(allowed):
            for other in self._candidates(self._words[number], common=False):
                if other >= number or other not in allowed:
                    continue
                left -= 1
                score = fuzz.ratio(self._sorted[number], self._sorted[other], score_cutoff=least)
                if score and self._digits(number) == self._digits(other):
                    yield number, other, score
            if left <= 0:
                return

    def _candidates(self, words: Sequence[str], *, common: bool) -> list[int]:
        held = sorted((len(self._holding[word]), word) for word in words if word in self._holding)
        found = dict.fromkeys(self._same.get(" ".join(sorted(words)), ())[-FEW:])
        for count, word in held[:RARE_WORDS]:
            if common or count <= FEW:
                found.update(dict.fromkeys(self._holding[word][-FEW:]))
        return list(found)

    def _digits(self, number: int) -> set[str]:
        return {word for word in self._words[number] if any(char.isdigit() for char in word)}
