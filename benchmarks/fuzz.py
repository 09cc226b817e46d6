"""``python -m benchmarks.fuzz --inputs N``: damaged files of every format that is read, and what reading them did.

Every input is refused with the one error of its format, or read as what was written (or, where its checksums were put
in order, as anything valid). A *finding* is anything else: another exception, another content without a word, a hang of
more than five seconds, memory of more than three times the folder and a constant, or a process that died. Findings go
to the corpus (``--corpus``), which every later run and the tests read first.

Inputs are numbered: the same number is the same input in the same tree. Workers read in processes of their own, so that
a death is a finding and not the end.
"""

from __future__ import annotations

import argparse
import base64
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.fuzz_files import BY_NAME
from benchmarks.fuzz_inputs import Format, Input, damaged, digest, formats, lay_out

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "data" / "fuzz"
LONGEST = 5.0
MEMORY_FACTOR, MEMORY_MORE = 3, 64 << 20
PORTION = 2_000
"""Inputs of one process."""
OUTCOMES = ("refused", "same", "valid", "foreign", "silent", "hang", "memory", "died")
FINDINGS = OUTCOMES[3:]


class TooLongError(BaseException):
    """Reading takes too long; no handler of errors may swallow it."""


def _stop(*_: object) -> None:
    raise TooLongError


def peak_memory() -> int:
    """The most memory that this process has had, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def judge(given: Input, format: Format, folder: Path, expected: str) -> tuple[str, str]:
    """Read a damaged folder: the outcome, and in words what happened."""
    held = sum(map(len, format.files.values())) + len(given.content or b"")
    before = peak_memory()
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        try:
            found = digest(format.read(folder))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except TooLongError:
        return "hang", f"took more than {LONGEST} seconds"
    except format.error as error:
        outcome, words = "refused", str(error)
    except Exception as error:
        if (
            isinstance(error, FileNotFoundError | IsADirectoryError)
            and given.content is None
            and format.name in BY_NAME
        ):
            return "refused", str(error)
        return "foreign", f"{type(error).__name__}: {error}"
    else:
        outcome, words = ("same", "") if found == expected else ("valid", "") if given.sealed else ("silent", "")
        # A round that is not there yet may be read again as what it was before it.
        if outcome == "silent" and given.how == "missing":
            outcome = "valid"
    taken = peak_memory() - before
    if taken > MEMORY_FACTOR * held + MEMORY_MORE:
        return "memory", f"{taken:,} bytes for {held:,}"
    return outcome, words


def read_all(inputs: Iterable[Input], known: dict[str, Format], place: Path) -> Iterator[tuple[Input, str, str]]:
    """Read inputs one after the other: each, its outcome, and what happened."""
    signal.signal(signal.SIGALRM, _stop)
    for name, format in known.items():
        for file in format.files:
            lay_out(Input(name, file, format.files[file], "whole"), format, place / name)
    expected = {name: digest(format.read(place / name)) for name, format in known.items()}
    last = dict.fromkeys(known, "")
    for given in inputs:
        format, folder = known[given.format], place / given.format
        lay_out(given, format, folder, previous=last[given.format])
        last[given.format] = given.file
        yield given, *judge(given, format, folder, expected[given.format])


def numbered(known: dict[str, Format], first: int, count: int, seed: int) -> Iterator[Input]:
    """The inputs ``first`` to ``first + count - 1``."""
    names = sorted(known)
    for number in range(first, first + count):
        yield damaged(known[names[number % len(names)]], seed * 10**12 + number)


def work(first: int, count: int, seed: int, at: Any, results: Any) -> None:
    """Read inputs in a process of their own."""
    tally: Counter[tuple[str, str]] = Counter()
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        known = formats(Path(place))
        outcomes = read_all(numbered(known, first, count, seed), known, Path(place))
        for number, (given, outcome, words) in enumerate(outcomes, first):
            at.value = number + 1
            tally[given.format, outcome] += 1
            if outcome in FINDINGS:
                found.append({"number": number, "outcome": outcome, "words": words[:300], **as_json(given)})
    results.put((dict(tally), found))


def as_json(given: Input) -> dict[str, Any]:
    """An input as plain data, for the corpus."""
    content = None if given.content is None else base64.b64encode(given.content).decode()
    return {**given._asdict(), "content": content}


def from_json(stored: dict[str, Any]) -> Input:
    """The input that `as_json` described."""
    content = None if stored["content"] is None else base64.b64decode(stored["content"])
    return Input(stored["format"], stored["file"], content, stored["how"], stored["sealed"])


def corpus(folder: Path = CORPUS) -> list[Input]:
    """What was found before."""
    return [from_json(json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]


def run(inputs: int, seed: int, workers: int, first: int = 0) -> tuple[Counter[tuple[str, str]], list[dict[str, Any]]]:
    """Read so many inputs: how many had each outcome, by format, and what was found."""
    context = multiprocessing.get_context("spawn")
    tally: Counter[tuple[str, str]] = Counter()
    found: list[dict[str, Any]] = []
    left = [(begin, min(PORTION, first + inputs - begin)) for begin in range(first, first + inputs, PORTION)]
    running: list[tuple[Any, Any, Any, int, int]] = []
    while left or running:
        while left and len(running) < workers:
            begin, count = left.pop(0)
            at, results = context.Value("q", begin), context.SimpleQueue()
            process = context.Process(target=work, args=(begin, count, seed, at, results))
            process.start()
            running.append((process, at, results, begin, count))
        for entry in list(running):
            process, at, results, begin, count = entry
            if results.empty() and process.is_alive():
                continue
            running.remove(entry)
            if not results.empty():
                part, more = results.get()
                tally.update(part)
                found += more
            else:
                tally["?", "died"] += 1
                found.append({"number": at.value, "outcome": "died", "words": f"exit code {process.exitcode}"})
                rest = begin + count - at.value - 1
                if rest > 0:
                    left.insert(0, (at.value + 1, rest))
            process.join()
        time.sleep(0.05)
    return tally, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="where findings are kept")
    options = parser.parse_args()
    began = time.perf_counter()
    tally, found = run(options.inputs, options.seed, options.workers)
    print(f"{'format':22}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES))
    for name in sorted({name for name, _ in tally}):
        print(f"{name:22}" + "".join(f"{tally[name, outcome]:>10,}" for outcome in OUTCOMES))
    total = {outcome: sum(count for (_, each), count in tally.items() if each == outcome) for outcome in OUTCOMES}
    print(f"{'all':22}" + "".join(f"{total[outcome]:>10,}" for outcome in OUTCOMES))
    print(f"{sum(total.values()):,} inputs in {time.perf_counter() - began:,.0f} seconds, seed {options.seed}")
    options.corpus.mkdir(parents=True, exist_ok=True)
    for each in found:
        print(f"{each['outcome']}: input {each['number']}, {each.get('format')}, {each.get('how')}: {each['words']}")
        if "content" in each:
            (options.corpus / f"{each['format']}-{each['number']}.json").write_text(json.dumps(each, indent=1) + "\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
