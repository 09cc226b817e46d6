"""Training a Stable-Baselines3 algorithm from explored resets, as a folder that speaks for itself."""
