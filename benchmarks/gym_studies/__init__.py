"""From a rare reward to an agent: `solve_task` beside learners with bonuses and planning alone, at equal samples."""
