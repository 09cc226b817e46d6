"""``python -m benchmarks.fuzz --inputs N``: damaged files of every format that is read, and what reading them did.

Every input is refused with the one error of its format, or read as what was written (or, where its checksums were put
in order, as anything valid). A *finding* is anything else: another exception, another content without a word, files of
two runs read as one, a hang of more than five seconds, twice, memory of more than three times the folder and a
constant, or a process that died. Findings go to the corpus (``--corpus``), which every later run and the tests read
first.

Inputs are numbered: the same number is the same input in the same tree, so that ranges of them (``--first``) can be
read on several machines; ``--report FILE`` keeps the counts, and ``--reports FILE ...`` adds them up. ``--seconds``
ends a run when its time is over. Workers read in processes of their own, so that a death is a finding and not the end.
"""

from __future__ import annotations

import argparse
import base64
import functools
import json
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.fuzz_digest import digest
from benchmarks.fuzz_files import BY_NAME
from benchmarks.fuzz_inputs import Format, Input, damaged, formats, lay_out

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "data" / "fuzz"
LONGEST = 5.0
MEMORY_FACTOR, MEMORY_MORE = 3, 64 << 20
PORTION = 20_000
"""Inputs of one process."""
MOST_KEPT = 100
"""Findings of one process that are kept; all are counted."""
OUTCOMES = ("refused", "same", "valid", "foreign", "silent", "mixed", "hang", "memory", "died")
FINDINGS = OUTCOMES[3:]
Tally = Counter[tuple[str, str]]
"""How many inputs had an outcome, by format and outcome."""
Findings = list[dict[str, Any]]
SEED_RANGE = 10**12
"""Numbers of one seed."""


class TooLongError(BaseException):
    """Reading takes too long; no handler of errors may swallow it."""


def _stop(*_: object) -> None:
    raise TooLongError


# How much memory reading takes -------------------------------------------------------------------------------------

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
_PEAK = re.compile(rb"VmHWM:\s*(\d+) kB")


def reset_peak() -> int:
    """Begin to measure; returns the most memory that the process has had, since then where that can be asked."""
    with suppress(OSError):  # on another system what an input takes is hidden by whatever took more before
        _CLEAR.write_bytes(b"5")
    return peak_memory()


def peak_memory() -> int:
    """The most memory that this process has had since `reset_peak`, in bytes."""
    try:
        found = _PEAK.search(_STATUS.read_bytes())
    except OSError:
        found = None
    if found is not None:
        return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


# One input ---------------------------------------------------------------------------------------------------------


class Judge:
    """Reads damaged folders of some formats, laid out below a place of its own.

    Args:
        known: the formats.
        place: an empty folder.
    """

    def __init__(self, known: dict[str, Format], place: Path) -> None:
        self._known, self._place = known, place
        self._expected, self._other = {}, {}
        for name, format in known.items():
            self._expected[name] = self._undamaged(format, format.files)
            if format.others.keys() == format.files.keys():
                self._other[name] = self._undamaged(format, format.others)
            self._undamaged(format, format.files)
        self._last = dict.fromkeys(known, "")
        signal.signal(signal.SIGALRM, _stop)

    def _undamaged(self, format: Format, files: dict[str, bytes]) -> str:
        folder = self._place / format.name
        for file, content in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
        return digest(format.read(folder))

    def __call__(self, given: Input) -> tuple[str, str]:
        """The outcome, and in words what happened."""
        format, folder = self._known[given.format], self._place / given.format
        lay_out(given, format, folder, previous=self._last[given.format])
        self._last[given.format] = given.file
        held = sum(map(len, format.files.values())) + len(given.content or b"")
        before = reset_peak()
        outcome, words = self._read(given, format, folder)
        if outcome == "hang":  # by the clock: on a busy machine once may be chance, twice is not
            outcome, words = self._read(given, format, folder)
        taken = peak_memory() - before
        if outcome not in FINDINGS and taken > MEMORY_FACTOR * held + MEMORY_MORE:
            return "memory", f"{taken:,} bytes for {held:,}"
        return outcome, words

    def _read(self, given: Input, format: Format, folder: Path) -> tuple[str, str]:
        signal.setitimer(signal.ITIMER_REAL, LONGEST)
        try:
            try:
                found = digest(format.read(folder))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
        except TooLongError:
            return "hang", f"took more than {LONGEST} seconds"
        except format.error as error:
            return "refused", str(error)
        except (FileNotFoundError, IsADirectoryError) as error:
            if given.content is None and format.name in BY_NAME:
                return "refused", str(error)
            return "foreign", f"{type(error).__name__}: {error}"
        except Exception as error:
            return "foreign", f"{type(error).__name__}: {error}"
        if found == self._expected[given.format]:
            return "same", ""
        if given.sealed:
            return "valid", ""
        if given.how == "missing":  # a round that is not there yet: what was before it
            return "valid", ""
        if given.how == "of another run":
            whole = len(format.files) == 1 or found == self._other.get(given.format) or _is_time(given.file)
            return ("valid" if whole else "mixed"), ""
        return "silent", ""


def _is_time(file: str) -> bool:
    """Whether a file holds seconds of the clock alone, which belong to no run."""
    return file.endswith(".time.json")


def read_all(inputs: Iterable[Input], known: dict[str, Format]) -> Iterator[tuple[Input, str, str]]:
    """Read inputs one after the other: each, its outcome, and what happened."""
    with tempfile.TemporaryDirectory() as own:
        judge = Judge(known, Path(own))
        for given in inputs:
            yield given, *judge(given)


def numbered(known: dict[str, Format], first: int, count: int, seed: int) -> Iterator[Input]:
    """The inputs ``first`` to ``first + count - 1``."""
    names = sorted(known)
    for number in range(first, first + count):
        yield damaged(known[names[number % len(names)]], seed * SEED_RANGE + number)


# Many inputs -------------------------------------------------------------------------------------------------------


class Portion(NamedTuple):
    """A part of a run, for one process."""

    samples: Path
    first: int
    inputs: int
    seed: int
    deadline: float
    """On the clock of all processes (`time.time`)."""


def work(portion: Portion, at: Any, results: Any) -> None:
    """Read inputs in a process of their own."""
    tally: Tally = Counter()
    found: Findings = []
    known = formats(portion.samples, write=False)
    outcomes = read_all(numbered(known, portion.first, portion.inputs, portion.seed), known)
    for number, (given, outcome, words) in enumerate(outcomes, portion.first):
        at.value = number + 1
        tally[given.format, outcome] += 1
        if outcome in FINDINGS and len(found) < MOST_KEPT:
            found.append({"number": number, "outcome": outcome, "words": words[:300], **as_json(given)})
        if time.time() > portion.deadline:
            break
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


def run(
    inputs: int,
    seed: int,
    workers: int,
    first: int = 0,
    seconds: float = float("inf"),
    keep: Callable[[Tally, Findings], None] = lambda tally, found: None,
    as_far_as_can_be: bool = False,
    at_once: int = PORTION,
) -> tuple[Tally, Findings]:
    """Read so many inputs: how many had each outcome, by format, and what was found; told after every portion, too."""
    context, deadline = multiprocessing.get_context("spawn"), time.time() + seconds
    tally: Tally = Counter()
    found: Findings = []
    running: list[tuple[Any, Any, Any, Portion]] = []
    with tempfile.TemporaryDirectory() as samples:
        formats(Path(samples), as_far_as_can_be=as_far_as_can_be)
        left = [
            Portion(Path(samples), begin, min(at_once, first + inputs - begin), seed, deadline)
            for begin in range(first, first + inputs, at_once)
        ]
        while left or running:
            while left and len(running) < workers:
                portion = left.pop(0)
                if time.time() > deadline:
                    continue
                at, results = context.Value("q", portion.first), context.SimpleQueue()
                process = context.Process(target=work, args=(portion, at, results))
                process.start()
                running.append((process, at, results, portion))
            for entry in list(running):
                process, at, results, portion = entry
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
                    rest = portion.first + portion.inputs - at.value - 1
                    if rest > 0:
                        left.insert(0, portion._replace(first=at.value + 1, inputs=rest))
                process.join()
                keep(tally, found)
            time.sleep(0.05)
    return tally, found


def table(tally: Tally) -> str:
    """The counts, a line for each format."""
    names = sorted({name for name, _ in tally})
    rows = [(name, [tally[name, outcome] for outcome in OUTCOMES]) for name in names]
    rows.append(("all", [sum(counts) for counts in zip(*(counts for _, counts in rows), strict=True)]))
    head = f"{'format':22}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES)
    return "\n".join([head, *(f"{name:22}" + "".join(f"{count:>10,}" for count in counts) for name, counts in rows)])


def write_report(path: Path, tally: Tally, found: Findings) -> None:
    """Keep counts and findings as JSON."""
    counts = [[name, outcome, count] for (name, outcome), count in sorted(tally.items())]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"counts": counts, "findings": found}, indent=1) + "\n")


def add_reports(paths: Iterable[Path]) -> tuple[Tally, Findings]:
    """What several runs came to."""
    tally: Tally = Counter()
    found: Findings = []
    for path in paths:
        report = json.loads(path.read_text())
        tally.update({(name, outcome): count for name, outcome, count in report["counts"]})
        found += report["findings"]
    return tally, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many, whatever is left")
    parser.add_argument("--portion", type=int, default=PORTION, help="inputs of one process")
    parser.add_argument("--skip-missing", action="store_true", help="leave out formats that cannot be written here")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="where findings are kept")
    parser.add_argument("--report", type=Path, help="keep the counts and the findings in this file")
    parser.add_argument("--reports", type=Path, nargs="+", help="run nothing; add up what these files hold")
    options = parser.parse_args()
    began = time.perf_counter()
    if options.reports:
        tally, found = add_reports(options.reports)
    else:
        path = options.report
        keep = functools.partial(write_report, path) if path is not None else (lambda tally, found: None)
        numbers = (options.inputs, options.seed, options.workers, options.first, options.seconds)
        tally, found = run(*numbers, keep, options.skip_missing, options.portion)
        seconds = time.perf_counter() - began
        print(f"{sum(tally.values()):,} inputs from {options.first:,} on, seed {options.seed}, in {seconds:,.0f} s")
    print(table(tally))
    options.corpus.mkdir(parents=True, exist_ok=True)
    for each in found:
        print(f"{each['outcome']}: input {each['number']}, {each.get('format')}, {each.get('how')}: {each['words']}")
        if "content" in each:
            (options.corpus / f"{each['format']}-{each['number']}.json").write_text(json.dumps(each, indent=1) + "\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
