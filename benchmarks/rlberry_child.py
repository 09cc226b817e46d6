"""The rival's side of ``python -m benchmarks.baselines --rlberry PYTHON``, run by an interpreter with rlberry-scool.

Nothing of this library is imported here, because rlberry-scool wants an older Gymnasium. Started with the path of an
``.npz`` file (transitions, rewards, start, terminal), it reads requests from its input, one JSON object a line
(``agent``, ``amount``, ``horizon``, ``gamma``, ``seed``), trains the agent and answers with the steps it took in the
environment and the seconds that took. The first line it writes says which version it is.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import metadata
from typing import Any

import numpy as np


def make_env(path: str) -> Any:
    """The MDP as rlberry's own `FiniteMDP`, with its terminal states."""
    from rlberry.envs.finite_mdp import FiniteMDP  # type: ignore[import-not-found, unused-ignore]

    with np.load(path, allow_pickle=False) as arrays:
        transitions, rewards, start, terminal = (
            arrays[name] for name in ("transitions", "rewards", "start", "terminal")
        )

    class Env(FiniteMDP):  # type: ignore[misc, unused-ignore]
        """Ends where the MDP does."""

        def is_terminal(self, state: int) -> bool:
            return bool(terminal[state])

    return Env(rewards, transitions, initial_state_distribution=int(np.argmax(start)))


def train(env: Any, request: dict[str, Any]) -> tuple[int, float]:
    """Train one agent for so many steps (Q-learning) or episodes (UCBVI); steps taken, and seconds."""
    from rlberry_scool.agents.tabular_rl import QLAgent  # type: ignore[import-not-found, unused-ignore]
    from rlberry_scool.agents.ucbvi import UCBVIAgent  # type: ignore[import-not-found, unused-ignore]

    kind, amount, gamma = request["agent"], request["amount"], request["gamma"]
    if kind == "Q-learning":
        agent = QLAgent(env, gamma=gamma, exploration_type="epsilon", exploration_rate=0.1, seeder=request["seed"])
    else:
        agent = UCBVIAgent(
            env, gamma=gamma, horizon=request["horizon"], real_time_dp="real-time" in kind, seeder=request["seed"]
        )
    began = time.perf_counter()
    agent.fit(budget=amount)
    seconds = time.perf_counter() - began
    return (amount if kind == "Q-learning" else int(agent.N_sa.sum())), seconds


def main() -> None:
    """Answer requests until there are no more."""
    env = make_env(sys.argv[1])
    print(json.dumps({"version": metadata.version("rlberry-scool")}), flush=True)
    for line in sys.stdin:
        steps, seconds = train(env, json.loads(line))
        print(json.dumps({"steps": steps, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
