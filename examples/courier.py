"""A courier in two rooms, seen as a dict with a text in it: importing this module registers Courier-v0."""

import gymnasium
import numpy as np
from gymnasium import spaces

SIZE, BATTERY = 9, 120
UP, DOWN, RIGHT, LEFT, GRAB, DROP = range(6)
MOVES = {UP: (0, -1), DOWN: (0, 1), RIGHT: (1, 0), LEFT: (-1, 0)}
HOME, PARCEL = (0, 0), (SIZE - 1, 0)
PIXELS = 24


class Courier(gymnasium.Env):
    """Fetches a parcel behind a wall; the only reward is 1 for bringing it home before the battery is empty."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(6)
        self.observation_space = spaces.Dict(
            {
                "place": spaces.Box(0, SIZE - 1, (2,), np.int64),
                "carries": spaces.Discrete(2),
                "battery": spaces.Box(0.0, 1.0, (1,), np.float32),
                "order": spaces.Text(40),
            }
        )

    def _seen(self):
        battery = np.array([self.left / BATTERY], np.float32)
        order = "fetch the parcel and bring it home"
        return {"place": np.array(self.place), "carries": self.carries, "battery": battery, "order": order}

    def reset(self, *, seed=None, options=None):
        """Begin at home with a full battery."""
        super().reset(seed=seed)
        self.place, self.carries, self.left = HOME, 0, BATTERY
        return self._seen(), {}

    def step(self, action):
        """Move unless there is a wall, or grab, or drop."""
        self.left -= 1
        if action in MOVES:
            x, y = np.add(self.place, MOVES[action])
            wall = x == SIZE // 2 and y != SIZE - 1
            if 0 <= x < SIZE and 0 <= y < SIZE and not wall:
                self.place = int(x), int(y)
        elif action == GRAB and self.place == PARCEL:
            self.carries = 1
        delivered = action == DROP and self.place == HOME and self.carries == 1
        return self._seen(), float(delivered), delivered, self.left == 0, {}

    def render(self):
        """The rooms from above: home, the parcel until it is taken, and the courier."""
        picture = np.full((SIZE * PIXELS, SIZE * PIXELS, 3), 235, np.uint8)

        def paint(x, y, colour, margin=0):
            rows, columns = (slice(at * PIXELS + margin, (at + 1) * PIXELS - margin) for at in (y, x))
            picture[rows, columns] = colour

        for y in range(SIZE - 1):
            paint(SIZE // 2, y, (60, 60, 60))
        paint(*HOME, (170, 210, 170))
        if not self.carries:
            paint(*PARCEL, (200, 120, 0), 5)
        paint(*self.place, (0, 100, 0) if self.carries else (0, 0, 200), 4)
        return picture


gymnasium.register("Courier-v0", entry_point=Courier)
