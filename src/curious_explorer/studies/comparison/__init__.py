"""Exploration methods side by side: the same worlds, the same budgets, many seeds, and statistics that say how sure."""
