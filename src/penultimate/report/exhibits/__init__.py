"""The tables and figures of the paper, each a pure function of a study's results: `build(results)`."""

from penultimate.registry import declare

_EXHIBITS = {
    "figure5": ("figure5", "Class separation against linear transfer, an objective a point"),
    "figure1": ("figure1", "Pretraining accuracy against linear transfer, a run a point"),
    "figureD1": ("figure_d1", "Pretraining accuracy against linear transfer, a data set a panel"),
    "table1": ("table1", "Pretraining accuracy, linear and kNN transfer"),
    "table3": ("table3", "Class separation in the penultimate layer"),
    "tableE1": ("table_e1", "Class separation by three distances"),
    "tableA2": ("table_a2", "The data sets"),
    "table4": ("table4", "Cosine softmax by temperature"),
    "figure6": ("figure6", "The last layer learnt anew from fresh images"),
    "iclr_figure5": ("iclr_figure5", "Relearned accuracy against linear transfer"),
    "claims": ("claims", "The paper's claims, the evidence here, a verdict on each"),
}
for _name, (_module, _summary) in _EXHIBITS.items():
    declare(
        "exhibit",
        _name,
        f"penultimate.report.exhibits.{_module}:build",
        _summary,
        "Kornblith, Chen, Lee and Norouzi, NeurIPS 2021",
    )
