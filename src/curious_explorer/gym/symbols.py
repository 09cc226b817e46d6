"""Observations made of small whole numbers, as symbols: a one-hot vector for each of their entries.

The numbers of a MiniGrid's view name kinds of things, and a network that takes them for brightness learns little. Which
numbers occur is read off observations that were seen, channel by channel (the last axis of an array): a number that was
never seen has a place of its own, the last.

Text says what to do in some tasks ("get the red key"). Where it is not always the same and made of few different words,
each of its words is a symbol, at its place in the text; else it is left out, as everywhere in networks' inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from curious_explorer.arrays import Integers, Singles
from curious_explorer.errors import ObservationError
from curious_explorer.gym.cells import Env
from curious_explorer.gym.network_inputs import SEEN, Part, parts_of
from curious_explorer.validation import check_count

MOST_SYMBOLS = 32
"""Numbers from here on are no symbols."""
MOST_WORDS, LONGEST_TEXT = 200, 40
"""Different words, and words of one text, from which on text is left out."""


class Words:
    """Texts as a number for each word: its place in a list of words, counted from one, and zero where there is none.

    Args:
        words: in order.
        longest: of how many words a text becomes; the rest is left out.
    """

    def __init__(self, words: Sequence[str], longest: int) -> None:
        self.words, self.longest = list(words), longest
        self._place = {word: place for place, word in enumerate(self.words, start=1)}
        self._known: dict[str, Integers] = {}

    @staticmethod
    def of(texts: set[str]) -> Words | None:
        """For texts that were seen; None where they are all the same, too many or too long."""
        split = [text.split() for text in texts]
        words, longest = sorted({word for text in split for word in text}), max(map(len, split))
        return (
            Words(words, longest) if len(texts) > 1 and len(words) <= MOST_WORDS and longest <= LONGEST_TEXT else None
        )

    def numbers(self, text: str) -> Integers:
        """The number of each word, shape (longest,)."""
        known = self._known.get(text)
        if known is None:
            unknown = len(self.words) + 1
            places = [self._place.get(word, unknown) for word in text.split()[: self.longest]]
            known = np.array(places + [0] * (self.longest - len(places)), dtype=np.int64)
            if len(self._known) < MOST_KNOWN:
                self._known[text] = known
        return known


REST = -1
"""What was never seen."""
MOST_KNOWN = 10_000
"""Texts whose numbers are kept."""


class Symbols:
    """How observations become one-hot vectors.

    Args:
        parts: those parts of observations that are seen, each with the number of symbols of every channel; or with the
            words of a text.
    """

    def __init__(self, parts: Sequence[tuple[Part, Sequence[int] | Words]]) -> None:
        self.parts = [part for part, _ in parts]
        self.channels = [sizes if isinstance(sizes, Words) else tuple(map(int, sizes)) for _, sizes in parts]
        entries = []
        for part, sizes in zip(self.parts, self.channels, strict=True):
            if isinstance(sizes, Words):
                entries.append(np.full(sizes.longest, len(sizes.words) + 2))
                continue
            cells = math.prod(part.space.shape or ()) // len(sizes)
            entries.append(np.tile(np.array(sizes, dtype=np.int64), cells))
        self._sizes: Integers = np.concatenate(entries)
        self._offsets = np.cumsum(self._sizes) - self._sizes
        self.width, self.entries = int(self._sizes.sum()), len(self._sizes)
        """How many numbers an observation becomes, and how many of them are one."""
        self.space = spaces.Box(0.0, 1.0, (self.width,), dtype=np.float32)

    @staticmethod
    def of(space: spaces.Space[Any], observations: Sequence[Any]) -> Symbols | None:
        """Symbols for a space, by what was seen in it; None where its numbers are not small whole numbers."""
        found: list[tuple[Part, list[int] | Words]] = []
        for part in parts_of(space):
            if not isinstance(part.space, SEEN):
                if observations and all(isinstance(part.of(observation), str) for observation in observations):
                    words = Words.of({part.of(observation) for observation in observations})
                    found += [] if words is None else [(part, words)]
                continue
            if isinstance(part.space, spaces.Discrete):
                if part.space.start != 0:
                    return None
                found.append((part, [int(part.space.n)]))
                continue
            if part.space.dtype is None or part.space.dtype.kind not in "iu":
                return None
            seen = np.array([part.of(observation) for observation in observations])
            if seen.size == 0 or seen.min() < 0 or seen.max() >= MOST_SYMBOLS:
                return None
            last = seen.shape[-1] if seen.ndim > 2 else 1
            flat = seen.reshape(-1, last)
            found.append((part, [int(flat[:, channel].max()) + 2 for channel in range(last)]))
        return Symbols(found) if any(not isinstance(sizes, Words) for _, sizes in found) else None

    def columns(self, observations: Sequence[Any]) -> NDArray[np.int64]:
        """Which columns of the one-hot vectors are one, shape (N, entries)."""
        described = list(zip(self.parts, self.channels, strict=True))
        seen = [
            [
                sizes.numbers(part.of(observation)) if isinstance(sizes, Words) else np.ravel(part.of(observation))
                for part, sizes in described
            ]
            for observation in observations
        ]
        given = np.array([np.concatenate(parts) for parts in seen], dtype=np.int64)
        if given.shape[1] != len(self._sizes) or (given < 0).any():
            raise ObservationError(
                f"the observation {observations[0]!r} has {given.shape[1]} numbers, expected {len(self._sizes)} of "
                "zero or more; it is of another environment, or under other wrappers"
            )
        columns: NDArray[np.int64] = np.minimum(given, self._sizes - 1) + self._offsets
        return columns

    def _names(self) -> Iterator[tuple[tuple[str | int, ...], int, int | str]]:
        """What each column stands for: the path of a part, the place of an entry, and a number, a word or `REST`."""
        for part, sizes in zip(self.parts, self.channels, strict=True):
            if isinstance(sizes, Words):
                symbols: list[int | str] = [0, *sizes.words, REST]
                yield from ((part.path, place, symbol) for place in range(sizes.longest) for symbol in symbols)
                continue
            cells = math.prod(part.space.shape or ()) // len(sizes)
            for place, size in enumerate(sizes * cells):
                yield from ((part.path, place, symbol) for symbol in (*range(size - 1), REST))

    def known_as(self, earlier: Symbols) -> NDArray[np.int64]:
        """For each column the one that stands for it in symbols of fewer observations; -1 where there is none.

        That of a symbol that was new since is the one of all symbols that had not been seen.
        """
        column = {name: place for place, name in enumerate(earlier._names())}
        known = [
            column.get((path, place, symbol), column.get((path, place, REST), -1))
            for path, place, symbol in self._names()
        ]
        return np.array(known, dtype=np.int64)

    def rows(self, observations: Sequence[Any]) -> Singles:
        """One-hot vectors, shape (N, width)."""
        rows = np.zeros((len(observations), self.width), dtype=np.float32)
        np.put_along_axis(rows, self.columns(observations), np.float32(1.0), axis=1)
        return rows

    def description(self) -> list[Any]:
        """As plain data: the path of each part, and the symbols of its channels, or its words and how many it has."""
        return [
            [list(part.path), [sizes.words, sizes.longest] if isinstance(sizes, Words) else list(sizes)]
            for part, sizes in zip(self.parts, self.channels, strict=True)
        ]

    @staticmethod
    def from_description(description: Sequence[Any], space: spaces.Space[Any]) -> Symbols:
        """The symbols that were described, of observations in a space."""
        by_path = {part.path: part for part in parts_of(space)}
        found: list[tuple[Part, Sequence[int] | Words]] = []
        for path, sizes in description:
            part = by_path.get(tuple(path))
            if part is None:
                raise ObservationError(f"observations in {space} have no part {path}")
            most = int(part.space.n) if isinstance(part.space, spaces.Discrete) else MOST_SYMBOLS + 1
            if sizes and isinstance(sizes[0], list):
                words, longest = sizes
                check_count(longest, f"the longest text of {path}", most=LONGEST_TEXT)
                if len(words) > MOST_WORDS or not all(isinstance(word, str) for word in words):
                    raise ObservationError(f"the words of {path} are not at most {MOST_WORDS} texts")
                found.append((part, Words(words, longest)))
            else:
                found.append(
                    (part, [check_count(size, f"the symbols of {path}", least=1, most=most) for size in sizes])
                )
        return Symbols(found)


class SymbolObservations(gymnasium.ObservationWrapper[Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """An environment that shows one-hot vectors in place of symbols."""

    def __init__(self, env: Env, symbols: Symbols) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, symbols=symbols)
        gymnasium.ObservationWrapper.__init__(self, env)
        self.symbols, self.observation_space = symbols, symbols.space

    def observation(self, observation: Any) -> Singles:
        """The one-hot vectors of one observation, in one row."""
        row: Singles = self.symbols.rows([observation])[0]
        return row
