"""What can be learned by counting: the counted model, and the planner on it."""
