"""Wrong inputs of every kind, to every command: each ends in a line that names what was given, and leaves no file.

A line below is a command line. After ~ it may leave the folder of the run behind, because only the first step shows
what is wrong; the next command may use it.
"""

import re
import shlex
import shutil
import sys

import pytest

from curious_explorer.cli.app import main
from curious_explorer.environments import combination_lock

CANNOT_BE_MADE = """
import gymnasium

def make(**arguments):
    raise RuntimeError("no display")

gymnasium.register("Raises-v0", make)
"""
NEED_LEARNERS = ("train", "solve", "play")
WRONG = {
    "root": """
exploer
--versoin
explore
explore MountainCar-v0 --sampels 3
compare extra-word
""",
    "reproduce": """
--preset tunned
--environments ddl
--environments cct,cct --depths 2 --seeds 1
--environments=
--depths five
--depths 0
--depths=-3
--depths=
--depths 2,2 --seeds 1
--depths 100000000000
--optimizers trop
--optimizers=
--seeds 0
--seeds=-1
--seeds two
--out afile --depths 2 --seeds 1
--out afile/inside --depths 2 --seeds 1
--out /proc/nowhere --depths 2 --seeds 1
--out notes --depths 2 --seeds 1
--comparison nowhere --depths 2 --seeds 1
--comparison notes --depths 2 --seeds 1
--comparison afile --depths 2 --seeds 1
--workers 0 --depths 2 --seeds 1
--workers=-2 --depths 2 --seeds 1
--executor clusters --depths 2 --seeds 1
--executor inline --workers 2 --depths 2 --seeds 1
--ray-address somewhere:1 --depths 2 --seeds 1
--ray-cpus-per-task 2 --depths 2 --seeds 1
--executor ray --ray-cpus-per-task=-1 --depths 2 --seeds 1
--executor ray --ray-gpus-per-task nan --depths 2 --seeds 1
""",
    "compare": """
--methods r-maxx
--methods=
--environments=
--environments dcl/x
--environments dcl/2@many
--environments dcl/2@0
--environments dcl/2@-5
--environments dcl/2,dcl/2 --seeds 1 --samples 500
--environments nowhere.json
--environments damaged.json
--environments folder.json
--environments MountanCar-v0
--samples 0
--samples=-5
--samples 1e9
--samples 99999999999999999999999
--gamma 1
--gamma nan
--gamma=-0.5
--gamma 0.9 --environments CartPole-v1
--methods ppo --environments dcl/5
--methods r-max --environments CartPole-v1
--environments dcl/5,CartPole-v1
--seeds 0
--out afile
--out notes
--environments dcl/2 --seeds 1 --samples 400 --methods r-max --out compared --resume
--workers 0
""",
    "solve": """
MountanCar-v0
nowhere_at_all:Id-v0
nowhere/Id-v0
dcl/20
lock.json
cannot_be_made:Raises-v0
MountainCar-v0 --samples 10
MountainCar-v0 --samples=-1
MountainCar-v0 --samples 1000000000000000000000000000000
MountainCar-v0 --samples many
MountainCar-v0 --algorithm ppoo
MountainCar-v0 --algorithm sac --samples 6000
Pendulum-v1 --algorithm dqn --samples 6000
MountainCar-v0 --cells 20xx
MountainCar-v0 --cells 0
MountainCar-v0 --cells identity
MountainCar-v0 --layout=-1
MountainCar-v0 --seed=-1
MountainCar-v0 --seed 99999999999999999999999
MountainCar-v0 --success-return nan
MountainCar-v0 --out afile
MountainCar-v0 --out notes
MountainCar-v0 --out /proc/nowhere
MountainCar-v0 --seeds 0
MountainCar-v0 --seeds 2 --layouts 3
MountainCar-v0 --seeds 2 --workers 0
MountainCar-v0 --layouts 0
MountainCar-v0 --layouts 2 --algorithm ppo
MountainCar-v0 --workers 2
MountainCar-v0 --executor ray
MountainCar-v0 --wandb mine --seeds 2
""",
    "play": """
nowhere
afile
notes
explored
trained --episodes 0
trained --episodes=-1
trained --episodes many
trained --which worst
trained --seed=-1
damaged-training
trained/policy.safetensors
""",
    "explore": """
MountanCar-v0
dcl20
dcl/0
dcl/2.5
dcl/
dcl/-3
garnet/1000000000000000
nowhere.npz
damaged.json
damaged.npz
folder.json
nan.json
MountainCar-v0 --optimizer trop
MountainCar-v0 --gamma nan
MountainCar-v0 --gamma 1
MountainCar-v0 --gamma=-1
MountainCar-v0 --gamma inf
MountainCar-v0 --samples=-5
MountainCar-v0 --samples 0
MountainCar-v0 --samples 3
MountainCar-v0 --samples 10000000000000000000000000000000000000000
MountainCar-v0 --optimizer model-based --samples 10000000000000000000000000000000000000000
dcl/2 --samples 0
dcl/2 --samples 100000000000000000000000000000000000000000
dcl/2 --rounds 0
dcl/2 --rounds 1000000000000000000000000000000
dcl/2 --beta nan
dcl/2 --beta=-1
dcl/2 --beta 1e308
dcl/2 --schedule lnear
dcl/2 --visits 0
dcl/2 --visits 10000000000000000000000000000000000000
dcl/2 --seed=-1
dcl/2 --seed 1.5
dcl/2 --seed 9999999999999999999999999999
dcl/2 --cells 5
dcl/2 --num-envs 2
dcl/2 --layout 3
dcl/2 --optimizer frontier
dcl/2 --optimizer ppo
dcl/2 --out afile
dcl/2 --out afile/inside
dcl/2 --out notes
dcl/2 --out /proc/nowhere
dcl/3 --out explored
dcl/2 --out explored --gamma 0.5
dcl/2 --tensorboard afile
MountainCar-v0 --cells bins
MountainCar-v0 --cells 0
MountainCar-v0 --cells 20x20x20
MountainCar-v0 --cells 20x20:0,0:1
MountainCar-v0 --cells 20x20:1,1:0,0
MountainCar-v0 --cells 20x20:nan,nan:1,1
MountainCar-v0 --cells 100000000x100000000
MountainCar-v0 --cells quantiles:0
MountainCar-v0 --cells hash:0
MountainCar-v0 --cells hash:-1
MountainCar-v0 --cells nowhere_at_all:cell:4
MountainCar-v0 --cells math:pi:4
~ MountainCar-v0 --cells math:sin:4 --samples 2000
MountainCar-v0 --cells operator:index:0
~ MountainCar-v0 --cells minigrid --samples 2000
MountainCar-v0 --max-cells 0
MountainCar-v0 --max-cells=-1
MountainCar-v0 --max-cells 99999999999999999999
MountainCar-v0 --cells 5x5 --max-cells 9
MountainCar-v0 --actions 1
MountainCar-v0 --actions 0
Pendulum-v1 --actions 0
Pendulum-v1 --actions 100000000000
MountainCar-v0 --num-envs 0
MountainCar-v0 --num-envs=-2
MountainCar-v0 --layout=-1
MountainCar-v0 --optimizer frontier --rounds 3
MountainCar-v0 --optimizer ppo --record
FrozenLake-v1?map_nam=8x8
FrozenLake-v1?is_slippery=maybe
FrozenLake-v1?map_name
with_a_slip:Id-v0
registers_nothing:Id-v0
cannot_be_made:Raises-v0
MountainCar-v0 --cells with_a_slip:cell:4
:MountainCar-v0
MountainCar-v0:
""",
    "train": """
MountanCar-v0
dcl/20
CartPole-v1 --reset-model nowhere
CartPole-v1 --reset-model afile
CartPole-v1 --reset-model notes
CartPole-v1 --reset-model explored
CartPole-v1 --weighting spread
CartPole-v1 --weighting widest --reset-model explored
CartPole-v1 --starts sideways
CartPole-v1 --starts spread
CartPole-v1 --set use_sde=maybe
CartPole-v1 --set target_kl=wide
CartPole-v1 --starts adaptive --weighting uniform --reset-model explored
CartPole-v1 --algorithm ppoo
CartPole-v1 --algorithm sac
Pendulum-v1 --algorithm dqn
CartPole-v1 --samples 0
CartPole-v1 --samples=-3
CartPole-v1 --samples 10000000000000000000000000000000000
CartPole-v1 --num-envs 0
CartPole-v1 --num-envs=-4
CartPole-v1 --num-envs 100000000
CartPole-v1 --evaluate-every 0
CartPole-v1 --evaluate-every=-2
CartPole-v1 --evaluation-episodes 0
CartPole-v1 --evaluation-episodes=-1
CartPole-v1 --seed=-1
CartPole-v1 --seed 99999999999999999999999
CartPole-v1 --layout=-1
CartPole-v1 --snapshots
CartPole-v1 --cell-function nowhere_at_all:cell
CartPole-v1 --cell-function cell
CartPole-v1 --out afile
CartPole-v1 --out notes
CartPole-v1 --out /proc/nowhere
CartPole-v1 --out trained --seed 9
CartPole-v1 --tensorboard afile
CartPole-v1 --set n_steps
CartPole-v1 --set n_steps=
CartPole-v1 --set =3
CartPole-v1 --set nsteps=4
CartPole-v1 --set n_steps=banana
CartPole-v1 --set n_steps=1.5
CartPole-v1 --set n_steps=0
CartPole-v1 --set n_steps=-5
CartPole-v1 --set n_steps=[64]
CartPole-v1 --set n_steps=true
~ CartPole-v1 --set n_steps=100000000000
CartPole-v1 --set batch_size=0
CartPole-v1 --set batch_size=-1
CartPole-v1 --set n_epochs=many
CartPole-v1 --set n_epochs=0
CartPole-v1 --set n_epochs=-1
CartPole-v1 --set learning_rate=nan
CartPole-v1 --set learning_rate=-1
CartPole-v1 --set learning_rate=fast
CartPole-v1 --set gamma=2
CartPole-v1 --set gae_lambda=-1
CartPole-v1 --set clip_range=-0.1
CartPole-v1 --set clip_range=wide
CartPole-v1 --set ent_coef=x
CartPole-v1 --set ent_coef=1e400
CartPole-v1 --set vf_coef=inf
CartPole-v1 --set max_grad_norm=-1
CartPole-v1 --set net_arch=64
CartPole-v1 --set net_arch=[0]
CartPole-v1 --set net_arch=[-3]
CartPole-v1 --set net_arch=[64,
CartPole-v1 --set net_arch=[1.5]
CartPole-v1 --set net_arch=[big]
CartPole-v1 --set net_arch=[10000000000]
CartPole-v1 --set activation_fn=rleu
CartPole-v1 --set policy_kwargs=1
CartPole-v1 --set policy=CnnPolicy
CartPole-v1 --set env=CartPole-v1
CartPole-v1 --set device=gpu
CartPole-v1 --set seed=3
CartPole-v1 --set verbose=loud
CartPole-v1 --set tensorboard_log=here
CartPole-v1 --set n_steps=64 --set n_steps=32
CartPole-v1 --algorithm dqn --set buffer_size=0
~ CartPole-v1 --algorithm dqn --set buffer_size=1000000000000000
CartPole-v1 --algorithm dqn --set train_freq=never
CartPole-v1 --algorithm dqn --set train_freq=0
CartPole-v1 --algorithm dqn --set exploration_fraction=-1
~ Pendulum-v1 --algorithm sac --set ent_coef=sometimes
Pendulum-v1 --algorithm sac --set tau=nan
CartPole-v1 --algorithm rnd --set bonus=none
CartPole-v1 --algorithm a2c --set n_steps=0
CartPole-v1 --algorithm trpo --set cg_max_steps=0
""",
    "hardness": """
FrozenLke-v1
MountainCar-v0
dcl/5 --gamma 1
dcl/5 --gamma nan
dcl/5 --gamma=-0.1
dcl/5000000000000
damaged.json
damaged.npz
nan.json
folder.json
afile
explored
""",
    "plan": """
dcl/5 --eta 0
dcl/5 --eta 2
dcl/5 --eta nan
dcl/5 --delta 0
dcl/5 --delta 1.5
dcl/5 --delta nan
dcl/5 --epsilon=-1
dcl/5 --epsilon nan
dcl/5 --epsilon 0.2
dcl/5 --schedule paper
dcl/5 --gamma 1
0
-- -3
1.5
1000000000000000000000000000000000000000
""",
    "certify": """
nowhere
afile
notes
trained
explored --delta 0
explored --delta 1
explored --delta nan
explored --walks 0
explored --cell-function os:getpid
explored --walks=-1
explored --walks 1000000000000000000000000
explored --max-steps=-3
explored --barrier nan
explored --barrier=-1
explored --environment dcl/3
explored/exploration --environment dcl/3
explored --environment nowhere.json
explored --seed=-1
explored --seed 0
explored --seed 99999999999999999999999
unfinished
""",
    "demo": """
--depth 0
--depth 101
--depth deep
--seed=-1
--depth 2 --out afile
--depth 2 --out /proc/nowhere
--depth 2 --seed 999999999999999999999999
""",
}
LINES = [
    (command, line) for command, lines in WRONG.items() for line in filter(None, map(str.strip, lines.splitlines()))
]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A folder with runs, damaged ones, files of other kinds, and modules that are none."""
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "afile").write_text("a file\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "letter.txt").write_text("keep me\n")
    (folder / "folder.json").mkdir()
    (folder / "damaged.json").write_text('{"format": "curious-expl')
    (folder / "damaged.npz").write_bytes(b"PK\x03\x04 nothing")
    (folder / "with_a_slip.py").write_text("def (:\n")
    (folder / "registers_nothing.py").write_text("x = 1\n")
    (folder / "cannot_be_made.py").write_text(CANNOT_BE_MADE)
    combination_lock(2).save(folder / "lock.json")
    (folder / "nan.json").write_text((folder / "lock.json").read_text().replace("1.0", "NaN", 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", list(sys.path))
        made = ["explore dcl/2 --out explored --optimizer model-based --rounds 2 --visits 100"]
        made += ["compare --environments dcl/2 --methods r-max --seeds 1 --samples 500 --workers 1 --out compared"]
        if _has_learners():
            small = "--samples 300 --num-envs 2 --set n_steps=64 --evaluation-episodes 1"
            made += [f"train CartPole-v1 --out trained {small}"]
        for line in made:
            patch.setattr(sys, "argv", ["curious-explorer", *line.split()])
            with pytest.raises(SystemExit) as stop:
                main()
            assert stop.value.code == 0
        shutil.copytree("explored", "unfinished")
        (folder / "unfinished" / "exploration" / "round-0001.npz").unlink()
        if _has_learners():
            shutil.copytree("trained", "damaged-training")
            for path in (folder / "damaged-training").glob("*.safetensors"):
                path.write_bytes(b"nothing")
        yield folder


def _has_learners():
    try:
        import stable_baselines3  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def _files(folder):
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_there_are_more_than_the_sixty_that_were_asked_for():
    assert len(LINES) > 250
    assert len({command for command, _ in LINES}) == 11


@pytest.mark.parametrize(("command", "line"), LINES, ids=lambda word: word)
def test_wrong_input_is_told_in_a_line(command, line, workspace, monkeypatch, capsys):
    if command in NEED_LEARNERS and not _has_learners():
        pytest.skip("the extra sb3 is not installed")
    leaves, words = line.startswith("~ "), shlex.split(line.removeprefix("~ "))
    before = _files(workspace)
    monkeypatch.setattr(sys, "argv", ["curious-explorer", *([] if command == "root" else [command]), *words])
    with pytest.raises(SystemExit) as stop:
        main()
    told = capsys.readouterr().err
    made = _files(workspace) - before
    shutil.rmtree(workspace / "results", ignore_errors=True)
    assert stop.value.code == 2, told
    assert "Traceback" not in told
    ours = told.splitlines()[-1].startswith("curious-explorer: ")
    assert ours or told.startswith("Usage: ")  # what is no number where one is expected, for example
    message = " ".join(told.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split())
    assert any(_is_named(word, message) for word in words) or not words, message
    assert leaves or not made
    assert before <= _files(workspace)


def _is_named(word, message):
    """Whether a word of the command line, its value or its option, occurs in the message."""
    option, _, value = word.partition("=") if word.startswith("-") else ("", "", word)
    name = option.lstrip("-").replace("-", "_").removesuffix("s")
    parts = [option, name, value, *re.split(r"[=?/:,x@]", value)]
    return any(part and part in message for part in parts) or "too large for this machine" in message
