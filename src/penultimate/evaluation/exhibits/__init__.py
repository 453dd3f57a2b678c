"""The exhibits of an evaluation: functions of a run, imported when they are asked for."""

from functools import partial

from penultimate.results.exhibit import declare_exhibits, exhibit

shows = partial(exhibit, page="evaluation", of_given=True)
"""Makes an exhibit of the page of given networks."""
RANKING = {
    "ranking": "Networks of your own ranked on each task, with intervals",
    "comparisons": "Every two networks of your own, compared on the same test images",
    "ranks": "Rank intervals, tie groups and detectable differences of networks of your own",
    "baselines": "Pixels, colours and random convolutions beside networks of your own",
    "labels": "Networks of your own on images of several labels: AUCs with paired tests",
}
NETWORKS = {
    "tuned": "Networks of your own, fine-tuned on each task",
    "features": "The features of networks of your own: separation, sparsity, rank",
    "likeness": "CKA of every two networks of your own, layer by layer",
    "cost": "Accuracy of networks of your own against parameters, multiply-adds and speed",
    "foretold": "Transferability scores of networks of your own, beside measured transfer",
    "classifiers": "Accuracy, calibration and agreement of networks of your own on the source",
}
FURTHER = {
    "readout": "The layer to read of networks of your own, chosen on validation images (--layers)",
    "outside": "How well networks of your own tell images of other data (--outside)",
    "few_labels": "Transfer of networks of your own from few labels",
    "probe_calibration": "Calibration of linear probes, before and after scaling (--calibrate)",
}
BASIS = {
    "confusions": "The classes that networks of your own confuse most, with pictures",
    "basis": "The data, the networks and the methods behind a ranking",
}
declare_exhibits(__name__, {"ranking": RANKING, "networks": NETWORKS, "further": FURTHER, "basis": BASIS})
