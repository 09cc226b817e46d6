"""The paper's four families of figures, each as a function from runs to a Matplotlib figure, and how they are saved."""

from curious_explorer.studies.figures.drawing_jobs import FigureJob, draw_figure, figure_jobs

__all__ = ["FigureJob", "draw_figure", "figure_jobs"]
