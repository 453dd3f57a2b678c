"""The tables and figures of the paper: functions of a run, imported when they are asked for."""

from penultimate.paper.published import PAPER
from penultimate.results.exhibit import declare_exhibits

declare_exhibits(
    __name__,
    {
        "claims": {"claims": "The paper's claims, the evidence here, and a verdict on each"},
        "transfer": {
            "table1": "Pretraining accuracy, linear and kNN transfer",
            "tableB1": "Accuracy, class separation and transfer in another architecture",
            "figure1": "Pretraining accuracy against linear transfer, with a point for each run",
            "figureD1": "Pretraining accuracy against linear transfer, a data set a panel",
            "table2": "Transfer of networks whose weights are all fine-tuned",
            "iclr_table1": "Accuracy of two more architectures under cosine decay, without weight averaging",
            "tableC1": "Training accuracy",
        },
        "separation": {
            "table3": "Class separation in the penultimate layer",
            "figure5": "Class separation against linear transfer, an objective a point",
            "table4": "Cosine softmax by temperature",
            "tableE1": "Class separation by three distances",
            "tableE2": "Simplex-ETF measurements (neural collapse)",
        },
        "densities": {
            "figureE1": "Angular visual hardness",
            "figureE2": "Singular value spectra of activations, weights and centroids",
            "figureE3": "Cosine distances within and between classes",
        },
        "layers": {
            "figure3": "Non-zero activations, layer by layer",
            "figure4": "Class separation, layer by layer",
            "depth": "Linear and kNN transfer from every block, and which layer serves each task best",
        },
        "robustness": {
            "tableC2": "Robustness: shifted test sets and corrupted images",
            "tableC3": "Calibration before and after temperature scaling",
        },
        "agreement": {
            "figureC4": "Networks that err alike: the same wrong answers, and their tree",
            "figureC5": "Agreement of two networks' predictions, in three ways",
            "figureC6": "Agreement of two ensembles' predictions, in three ways",
            "figureC7": "Accuracy of ensembles within and across objectives",
        },
        "tasks": {
            "tableA2": "The data sets",
            "tableF1": "Class overlap: by name, and by assignment of the predictions",
            "tableD1": "AUC of each label of images with several labels",
        },
        "maps": {
            "figure2": "CKA of the layers of networks with different objectives",
            "figureB1": "CKA of the layers, in a second architecture",
            "figureD3": "CKA of a network's layers before and after fine-tuning",
        },
        "training": {
            "figureC1": "Holdout accuracy over the epochs of training",
            "figureC2": "Training accuracy over the epochs of training",
            "figureC3": "Test against training accuracy",
            "figureD2": "Linear transfer over the epochs of training",
            "figureE4": "Class separation over training",
        },
        "augmentation": {
            "tableC5": "Accuracy under AutoAugment and Mixup",
            "tableC6": "Accuracy after long training",
            "tableE3": "AutoAugment, accuracy and class separation",
            "tableC4": "Combinations of objectives",
        },
        "relearning": {
            "figure6": "The last layer learnt again from fresh images",
            "iclr_figure5": "Relearned accuracy against linear transfer",
        },
        "tuning": {
            "tableA1": "How the hyperparameters were chosen",
            "iclr_tableA2": "Learning rate, weight decay and hyperparameters",
        },
        "better": {"better": "Candidates better than softmax in both, and the chosen one on other tasks"},
        "strengths": {
            "doses": "Transfer against class separation in families of strengths",
            "projectors": "Transfer and accuracy behind layers that are thrown away",
        },
    },
    PAPER,
)
