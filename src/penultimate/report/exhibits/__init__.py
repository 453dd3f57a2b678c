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
    "figureC1": ("figure_c1", "Holdout accuracy over the epochs of training"),
    "figureC2": ("figure_c2", "Training accuracy over the epochs of training"),
    "figureC3": ("figure_c3", "Test against training accuracy"),
    "figureC4": ("figure_c4", "Networks that err alike: the same wrong answers, and their tree"),
    "figureC5": ("figure_c5", "Agreement of two networks' predictions, in three ways"),
    "figureC6": ("figure_c6", "Agreement of two ensembles' predictions, in three ways"),
    "figureC7": ("figure_c7", "Accuracy of ensembles within and across objectives"),
    "tableC1": ("table_c1", "Training accuracy"),
    "tableC2": ("table_c2", "Robustness: shifted test sets and corrupted images"),
    "tableC3": ("table_c3", "Calibration before and after temperature scaling"),
    "tableA1": ("table_a1", "How the hyperparameters were chosen"),
    "iclr_tableA2": ("iclr_table_a2", "Learning rate, weight decay and hyperparameters"),
    "table4": ("table4", "Cosine softmax by temperature"),
    "figure6": ("figure6", "The last layer learnt anew from fresh images"),
    "iclr_figure5": ("iclr_figure5", "Relearned accuracy against linear transfer"),
    "tableE2": ("table_e2", "Simplex-ETF measurements (neural collapse)"),
    "figure2": ("figure2", "CKA of the layers of networks with different objectives"),
    "figureB1": ("figure_b1", "CKA of the layers, in a second architecture"),
    "figure3": ("figure3", "Sparsity of the activations, layer by layer"),
    "figure4": ("figure4", "Class separation, layer by layer"),
    "figureE1": ("figure_e1", "Angular visual hardness"),
    "figureE2": ("figure_e2", "Singular value spectra of activations, weights and centroids"),
    "figureE3": ("figure_e3", "Cosine distances within and between classes"),
    "figureD3": ("figure_d3", "CKA of a network's layers before and after further training"),
    "figureE4": ("figure_e4", "Class separation over training"),
    "plugins": ("plugins", "What metrics and probes from plug-ins have measured"),
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
