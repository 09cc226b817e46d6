"""The benchmark of `solve`: its table says what runs came to, and its time limit holds."""

import contextlib
import json

import numpy as np
import pytest

from benchmarks import solve_suite


def run(task, seed, **changed):
    return {
        "task": task,
        "seed": seed,
        "given": solve_suite.TASKS[task].samples,
        "success": 1.0,
        "success_return": 0.0,
        "return_mean": 0.9,
        "samples": 1_000 * (seed + 1),
        "explored": 500,
        "first_reward": 100 + seed,
        "verdict": "Solved: all is well.",
        "acts": "plan",
        "seconds": 2.0,
        **changed,
    }


def test_the_table_counts_what_is_solved_and_quotes_verdicts_of_failures():
    verdict = "Reward never seen: | nothing\nmore."
    runs = [run("KeyRoom", seed) for seed in range(3)]
    runs += [run("Dials", 0), run("Dials", 1, success=0.0, first_reward=None, verdict=verdict)]
    runs += [run("Reach", 0, return_mean=-10.0, success=0.0, verdict="Learned as far as this: so far.")]
    text = solve_suite.table(runs, ["Taxi, seed 0: not begun in time"])
    assert "| KeyRoom | 100,000 | 3 of 3 | 100%, 100%, 100% | 0.9, 0.9, 0.9 | 2,000 | 101 | plan |" in text
    assert "| Dials | 100,000 | 1 of 2 | 100%, 0% | 0.9, 0.9 | 1,500 | seen by 1 | plan |" in text
    assert "| Reach | 100,000 | 1 of 1 |" in text
    assert "3 tasks, 6 runs, 12 core-seconds: 2 solved with most seeds, 2 with all." in text
    assert "| Dials, seed 1 | Reward never seen: \\| nothing more. |" in text
    assert "- Taxi, seed 0: not begun in time" in text


def test_no_run_begins_after_the_time_is_over(tmp_path, capsys):
    (tmp_path / "runs").mkdir()
    text = solve_suite.table_after([("KeyRoom", 0)], tmp_path, 2, -1.0)
    assert "KeyRoom, seed 0: not begun in time" in text
    assert (tmp_path / solve_suite.TABLE_FILE).read_text() == text
    assert not list((tmp_path / "runs").iterdir())


def test_a_line_that_was_cut_off_is_no_run(tmp_path):
    path = tmp_path / solve_suite.RUNS_FILE
    path.write_text(json.dumps(run("KeyRoom", 0)) + '\n{"task": "KeyR')
    assert [each["seed"] for each in solve_suite.read(path)] == [0]
    assert solve_suite.read(tmp_path / "nothing") == []


def test_every_task_can_be_made():
    pytest.importorskip("minigrid", reason="the extra gym is not installed")
    from curious_explorer.gym.make_env import make_by_id

    for name in solve_suite.HERE:
        make_by_id(solve_suite.TASKS[name].environment).close()
    assert {name for name in solve_suite.TASKS if solve_suite.TASKS[name].needs is None} <= set(solve_suite.HERE)


def test_what_runs_is_ended_with_the_suite(tmp_path, monkeypatch):
    import subprocess
    import sys

    begun = []

    def begin(name, seed, out):
        if begun:
            raise KeyboardInterrupt
        begun.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return name, seed, contextlib.nullcontext(), begun[0]

    monkeypatch.setattr(solve_suite, "_begin", begin)
    with pytest.raises(KeyboardInterrupt):
        solve_suite.make_runs([("KeyRoom", 0), ("Dials", 0)], tmp_path, 2, 60.0)
    assert begun[0].wait(timeout=10) == -9


def test_an_environment_of_dm_env_is_one_of_gymnasium():
    from types import SimpleNamespace

    from benchmarks.outside_tasks import DeepMindEnv

    class Counts:
        """As the Control Suite makes them: the third step is the last, cut off if its discount is one."""

        def __init__(self, seed):
            self._discount = float(seed == 1)

        def action_spec(self):
            return SimpleNamespace(shape=(2,), minimum=-1.0, maximum=[1.0, 2.0])

        def reset(self):
            self._at = 0
            return self._step(None)

        def step(self, action):
            self._at += 1
            return self._step(1.0)

        def _step(self, reward):
            seen = {"at": np.array([self._at]), "twice": 2.0 * self._at}
            last = self._at == 3
            return SimpleNamespace(observation=seen, reward=reward, discount=self._discount, last=lambda: last)

    env = DeepMindEnv(Counts)
    assert env.action_space.high.tolist() == [1.0, 2.0]
    for seed, truncated in ((0, False), (1, True)):
        assert env.reset(seed=seed)[0].tolist() == [0.0, 0.0]
        assert env.step(None)[2:4] == (False, False)
        env.step(None)
        observation, reward, *ended, _ = env.step(None)
        assert (observation.tolist(), reward, ended) == ([3.0, 6.0], 1.0, [not truncated, truncated])
