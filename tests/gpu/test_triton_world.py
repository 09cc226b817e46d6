"""`TabularWorld` on Triton: the same world, moved between backends; and plain words where there is no GPU."""

import logging
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from counted_helpers import counted

from curious_explorer import ResetModel, TabularWorld, visit
from curious_explorer.environments import crossroad_traps
from curious_explorer.errors import BackendError
from curious_explorer.gpu import device
from curious_explorer.learners.online import OnlineAgent
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

MDP = crossroad_traps(3)
UNIFORM = MDP.uniform_policy()


def live(world, *, gamma=0.4):
    """A little of everything; returns what was seen."""
    roll_in = RollIn.from_start().then(UNIFORM, gamma)
    walked = world.walk(roll_in, 20).tolist()
    counts = visit(world, UNIFORM, gamma=gamma, count=30).tolist()
    batch = world.episodes(UNIFORM, EpisodeBatch(episodes=8, horizon=3, gamma=gamma, reset=roll_in))
    steps = [world.restart(), world.step(0).state]
    followed = OnlineAgent(world, gamma=gamma, horizon=5).follow(UNIFORM, max_samples=30)
    return walked, counts, batch.lengths.tolist(), batch.samples, steps, followed.samples, followed.ends.tolist()


def test_a_run_moves_between_backends():
    numba, ours = TabularWorld(MDP, seed=3), TabularWorld(MDP, seed=3, backend="triton")
    assert (numba.backend, ours.backend) == ("numba", "triton")
    assert numba.identity() == ours.identity()
    assert live(numba) == live(ours)
    assert numba.position() == ours.position()
    moved = TabularWorld(MDP, seed=3)
    moved.restore(ours.position())
    assert live(moved) == live(ours)


def test_visits_come_in_the_same_portions(monkeypatch):
    monkeypatch.setattr(sys.modules["curious_explorer.worlds.world"], "WALKS_AT_ONCE", 16)
    worlds = [TabularWorld(MDP, seed=2), TabularWorld(MDP, seed=2, backend="triton")]
    first, second = (visit(world, UNIFORM, gamma=0.3, count=40) for world in worlds)
    assert first.tolist() == second.tolist()
    assert first.sum() == 40
    assert worlds[0].position() == worlds[1].position()


def test_unknown_backends_are_refused():
    with pytest.raises(ValueError, match="backend is 'cuda', expected one of 'numba', 'triton', 'auto'"):
        TabularWorld(MDP, backend="cuda")


def test_auto_does_not_interpret(caplog):
    with caplog.at_level(logging.INFO, "curious_explorer"):
        assert TabularWorld(MDP, backend="auto").backend == "numba"
    assert "'auto' is 'numba'" in caplog.text


@pytest.mark.parametrize("missing", ["torch", "triton"])
def test_missing_packages_are_named(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(BackendError, match=rf"needs the package '{missing}'.*\[gpu\]"):
        TabularWorld(MDP, backend="triton")


def no_gpu(monkeypatch, build, message):
    """A PyTorch that finds no GPU, for the reason it gives itself."""

    def fail():
        raise RuntimeError(message)

    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setattr(torch.cuda, "init", fail)
    monkeypatch.setattr(torch.version, "cuda", build)


@pytest.mark.parametrize(
    ("build", "message", "said"),
    [
        (None, "Torch not compiled with CUDA enabled", "is built for the CPU alone"),
        (
            "13.0",
            "The NVIDIA driver on your system is too old (found version 11040).",
            "driver is too old .* CUDA 13.0",
        ),
        ("13.0", "Found no NVIDIA driver on your system.", "needs an NVIDIA GPU"),
    ],
)
def test_no_gpu_is_explained(build, message, said, monkeypatch, caplog):
    no_gpu(monkeypatch, build, message)
    with pytest.raises(BackendError, match=f"{said}.*use backend='numba'"):
        TabularWorld(MDP, backend="triton")
    with caplog.at_level(logging.INFO, "curious_explorer"):
        assert TabularWorld(MDP, backend="auto").backend == "numba"
    assert "'auto' is 'numba'" in caplog.text


def test_auto_takes_a_gpu(monkeypatch, caplog):
    from curious_explorer import backends

    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setattr(device, "find_device", lambda: SimpleNamespace(type="cuda"))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a fine GPU")
    with caplog.at_level(logging.INFO, "curious_explorer"):
        assert backends.choose_backend("auto") == "triton"
    assert "'auto' is 'triton', on a fine GPU" in caplog.text


def test_too_little_memory_is_refused_with_figures(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (2 << 30, 8 << 30))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a small GPU")
    card = SimpleNamespace(type="cuda")
    device.check_memory(1 << 30, card, "a small MDP")
    with pytest.raises(BackendError, match=r"a large MDP needs 3\.00 GiB .* 1\.75 GiB of 8\.0 GiB are free on a small"):
        device.check_memory(3 << 30, card, "a large MDP")


def test_bad_tensors_are_refused():
    from curious_explorer.gpu.device_tables import load_model, prepare_policies, roll_in_batch, stream_keys
    from curious_explorer.gpu.triton_walks import walk_batch

    model = load_model(MDP)
    with pytest.raises(ValueError, match="policy has shape"):
        prepare_policies(model, torch.ones(1, 2, 2, dtype=torch.float64))
    policy = prepare_policies(model, torch.from_numpy(np.stack([UNIFORM, UNIFORM])), composed=False)
    roll_ins = roll_in_batch(model, [policy], [0.5], tail=1)
    with pytest.raises(ValueError, match="roll_ins is for 2 runs, but there are 3 keys"):
        walk_batch(model, roll_ins, stream_keys([1, 2, 3], 0, model.device), 5)
    with pytest.raises(ValueError, match="no composed tables"):
        walk_batch(model, roll_ins, stream_keys([1, 2], 0, model.device), 5, composed=True)


def test_roll_ins_to_chosen_states_are_refused():
    resets = ResetModel([MDP.uniform_policy()], gamma=0.9, model=counted(MDP))
    world = TabularWorld(MDP, seed=0, backend="triton")
    with pytest.raises(BackendError, match="backend='numba'"):
        resets.weighted("uniform").sample(world, 10)
