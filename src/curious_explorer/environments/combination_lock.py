"""The Diabolical Combination Lock, DCL(d): two open lanes, one locked lane, and no way back.

States start, A1..Ad, B1..Bd, L1..Ld, endA, endB, lockedEnd: 3 d + 4 of them. Every action goes one level down, so an
episode has exactly d + 1 transitions. On an open lane (the start counts as lane A) one action stays on its lane with
probability 1 - switch and crosses over with probability switch, a second one does the opposite, and the other two
drop into the locked lane for good. Entering endA or endB pays 1. A uniform policy is rewarded with probability
(1/2) ** (d + 1); the best undiscounted return is 1.
"""

from __future__ import annotations

from curious_explorer.environments.action_labels import permute_action_labels
from curious_explorer.mdp.builder import MDPBuilder
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_count, check_probability

START = "start"
END_A, END_B, LOCKED_END = "endA", "endB", "lockedEnd"


def combination_lock(depth: int, *, switch: float = 0.2, permute_actions: int | None = 0) -> FiniteMDP:
    """DCL(depth), with ``3 * depth + 4`` states and four actions.

    Args:
        depth: how many levels lie between the start and the ends.
        switch: probability that the "stay" action changes lanes (and that the "cross" action does not).
        permute_actions: seed for the action labels of each state; None keeps the same meaning everywhere.
    """
    depth = check_count(depth, "depth", least=1, most=1_000_000)
    switch = check_probability(switch, "switch")
    lanes = {lane: [f"{lane}{level}" for level in range(1, depth + 1)] for lane in "ABL"}
    builder = MDPBuilder()
    builder.states(START, *lanes["A"], *lanes["B"], *lanes["L"], END_A, END_B, LOCKED_END)
    builder.actions("stay", "cross", "drop", "fall")
    path: dict[str, list[str | None]] = {
        "A": [START, *lanes["A"], END_A],
        "B": [None, *lanes["B"], END_B],
        "L": [None, *lanes["L"], LOCKED_END],
    }
    for level in range(depth + 1):
        reward = 1.0 if level == depth else 0.0
        below = {lane: str(states[level + 1]) for lane, states in path.items()}
        for lane, other in ("AB", "BA"):
            if (state := path[lane][level]) is not None:
                here = builder.state(state)
                stay, cross = here.action("stay", reward=reward), here.action("cross", reward=reward)
                stay.to(below[lane], 1.0 - switch).to(below[other], switch)
                cross.to(below[other], 1.0 - switch).to(below[lane], switch)
                here.action("drop").to(below["L"])
                here.action("fall").to(below["L"])
        if (state := path["L"][level]) is not None:
            for action in ("stay", "cross", "drop", "fall"):
                builder.state(state).action(action).to(below["L"])
    mdp = builder.terminal(END_A, END_B, LOCKED_END).start(START).build()
    return permute_action_labels(mdp, permute_actions)
