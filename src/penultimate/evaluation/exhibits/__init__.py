"""The exhibits of an evaluation: functions of a run, imported when they are asked for."""

from penultimate.report.spec import declare_exhibits as declare_specs
from penultimate.results.exhibit import declare_exhibits

declare_exhibits(
    __name__,
    {
        "order": {
            "ranking": "Networks of your own ranked on each task, with intervals",
            "comparisons": "Every two networks of your own, compared on the same test images",
        },
    },
)
declare_specs(__name__, __path__)  # those that are not functions yet
