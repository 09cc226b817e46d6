"""Exploration for the problems people have: PPO and TRPO in Gymnasium, from explored resets and without."""
