"""The bidirectional combination lock of the PC-PG paper (Agarwal, Henaff, Kakade and Sun 2020).

The first action chooses one of two locks, the left one for half of the actions and the right one for the others. Each
lock has H levels of two good states and, from the second on, a dead one. In a good state one action of ten is right
and leads to either good state of the next level, with probability one half each; every other leads to the dead state,
from which there is no way back. The right action of the last level ends the left lock with a reward of 5 and the right
lock with 2. Every right action before that costs 1 / (H - 1), so surviving a whole lock costs 1, and a learner that
follows what it sees learns to die at once.

Every episode has exactly H + 1 steps. Rewards are mapped to [0, 1], and the ends go on paying what stands for nothing;
`FiniteMDP.reward_scale` has it.

This is the environment of the authors' own code (github.com/mbhenaff/PCPG, ``DiabolicalLockMaze`` in
deep_rl/component/envs.py over ``DiabolicalCombinationLock`` in homer_envs/rl_acid_environment.py, with its default
settings), except that their ``horizon`` counts the first action too, so theirs of 6 is 5 here; that which lock pays 5
depends there on the seed, and here the labels do; and that they observe features of the state, not its number.
"""

from __future__ import annotations

from curious_explorer.environments.action_labels import permute_action_labels
from curious_explorer.mdp.builder import MDPBuilder
from curious_explorer.mdp.finite_mdp import FiniteMDP, RewardScale
from curious_explorer.validation import check_count

START = "start"
END_REWARDS = {"left": 5.0, "right": 2.0}
DEAD_END = "deadEnd"
GOOD = "AB"


def bidirectional_lock(horizon: int, *, num_actions: int = 10, permute_actions: int | None = 0) -> FiniteMDP:
    """The bidirectional lock with ``6 * horizon + 2`` states.

    Args:
        horizon: H, how many right actions open a lock.
        num_actions: how many actions there are in each state; the published number is 10.
        permute_actions: seed for the action labels of each state; None makes action 0 the right one everywhere.
    """
    horizon = check_count(horizon, "horizon", least=2, most=1_000_000)
    num_actions = check_count(num_actions, "num_actions", least=2)
    cost = 1.0 / (horizon - 1)
    scale = RewardScale(-cost, max(END_REWARDS.values()) + cost)

    def scaled(reward: float) -> float:
        return (reward - scale.offset) / scale.factor

    builder = MDPBuilder()
    levels = range(1, horizon + 1)
    ends = {side: f"{side}End" for side in END_REWARDS}
    inside = [f"{side}{lane}{level}" for side in END_REWARDS for lane in (*GOOD, "D") for level in levels]
    inside = [name for name in inside if not name.endswith("D1")]  # the dead lanes begin at the second level
    builder.states(START, *inside, *ends.values(), DEAD_END)
    actions = [f"a{number}" for number in range(num_actions)]
    builder.actions(*actions)
    for number, action in enumerate(actions):
        side = "left" if number < num_actions // 2 else "right"
        first = builder.state(START).action(action, reward=scaled(0.0))
        first.to(f"{side}A1", 0.5).to(f"{side}B1", 0.5)
    for side, end_reward in END_REWARDS.items():
        for level in levels:
            last = level == horizon
            dead = DEAD_END if last else f"{side}D{level + 1}"
            for lane in GOOD:
                here = builder.state(f"{side}{lane}{level}")
                right = here.action(actions[0], reward=scaled(end_reward if last else -cost))
                if last:
                    right.to(ends[side])
                else:
                    right.to(f"{side}A{level + 1}", 0.5).to(f"{side}B{level + 1}", 0.5)
                for action in actions[1:]:
                    here.action(action, reward=scaled(0.0)).to(dead)
            for action in actions if level > 1 else ():
                builder.state(f"{side}D{level}").action(action, reward=scaled(0.0)).to(dead)
    for end in (*ends.values(), DEAD_END):
        for action in actions:
            builder.state(end).action(action, reward=scaled(0.0)).to(end)
    mdp = builder.terminal(*ends.values(), DEAD_END).start(START).build(reward_scale=scale)
    return permute_action_labels(mdp, permute_actions)
