"""The questions of the page: one list."""

from expmech.explore.questions.base import MadeUpTable, Question, Setting
from expmech.explore.questions.columns import HistogramQuestion, MeanQuestion, QuantileQuestion
from expmech.explore.questions.examples import ExampleOne, ExampleTwo
from expmech.explore.questions.regression import RegressionQuestion
from expmech.explore.questions.selection import SelectionQuestion

QUESTIONS: dict[str, Question] = {
    "mean": MeanQuestion(),
    "quantiles": QuantileQuestion(),
    "histogram": HistogramQuestion(),
    "regression": RegressionQuestion(),
    "selection": SelectionQuestion(),
    "example1": ExampleOne(),
    "example2": ExampleTwo(),
}

__all__ = ["QUESTIONS", "MadeUpTable", "Question", "Setting"]
