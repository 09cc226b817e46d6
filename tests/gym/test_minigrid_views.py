"""MiniGrid's observations drawn faster are the same observations."""

import gymnasium
import numpy as np
import pytest

from curious_explorer.gym.fixed_layout import with_layout
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.gym.minigrid_views import FastViews, draw_faster

TASKS = ("KeyCorridorS3R3", "MultiRoom-N6", "DoorKey-8x8", "ObstructedMaze-1Dlhb", "LavaGapS7", "Dynamic-Obstacles-8x8")


@pytest.mark.parametrize("task", TASKS)
def test_views_are_those_of_minigrid(task):
    name = f"MiniGrid-{task}-v0"
    plain, fast = gymnasium.make(name), FastViews(gymnasium.make(name))
    generator = np.random.default_rng(7)
    for seed in range(4):
        pair = [env.reset(seed=seed)[0] for env in (plain, fast)]
        for _ in range(150):
            assert np.array_equal(pair[0]["image"], pair[1]["image"])
            assert pair[1]["image"].dtype == np.uint8
            assert (pair[0]["direction"], pair[0]["mission"]) == (pair[1]["direction"], pair[1]["mission"])
            action = int(generator.choice([0, 1, 2, 2, 2, 3, 4, 5, 5]))
            steps = [env.step(action) for env in (plain, fast)]
            assert steps[0][1:4] == steps[1][1:4]
            pair = [step[0] for step in steps]
            if steps[0][2] or steps[0][3]:
                break


def test_only_a_minigrid_is_taken():
    with pytest.raises(ValueError, match="expected a MiniGrid"):
        FastViews(gymnasium.make("CartPole-v1"))


def test_environments_are_made_by_id_with_the_same_views_unless_they_draw_in_their_own_way():
    env = with_layout(make_by_id("MiniGrid-DoorKey-5x5-v0"), 3)
    assert "gen_obs" in vars(env.unwrapped)
    seen, plain = env.reset()[0]["image"], gymnasium.make("MiniGrid-DoorKey-5x5-v0").reset(seed=3)[0]["image"]
    assert np.array_equal(seen, plain)
    env.unwrapped.gen_obs = own = dict
    draw_faster(env)
    assert env.unwrapped.gen_obs is own
    draw_faster(gymnasium.make("CartPole-v1"))  # and so does whatever is no MiniGrid
