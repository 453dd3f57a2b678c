"""Metrics and probes, each with one thing wrong with it."""

import numpy as np
import torch

from penultimate import register


def first_column(bank):
    return np.asarray(bank.features)[:, 0]


@register.metric
def as_tensor(bank):
    return torch.as_tensor(first_column(bank)).mean()


@register.metric
def undefined(bank):
    return float("nan")


@register.metric
def of_the_first(bank):
    return float(first_column(bank)[0])


@register.metric
def nothing(bank):
    return {}


@register.metric
def badly_named(bank):
    return {"mean norm": 1.0}


@register.metric
def at_random(bank):
    return float(np.random.default_rng().random())


@register.metric
def centring(bank):
    bank.features[:] = 0
    return 0.0


class Means:
    def fit(self, features, labels):
        self.labels, codes = np.unique(labels, return_inverse=True)
        self.means = np.stack([features[codes == code].mean(0) for code in range(len(self.labels))])
        return self

    def positions(self, features):
        return np.linalg.norm(features[:, None] - self.means, axis=-1).argmin(1)

    def predict(self, features):
        return self.labels[self.positions(features)]

    def score(self, features, labels):
        return float((self.predict(features) == labels).mean())


@register.probe
class FitsInSilence(Means):
    def fit(self, features, labels):
        super().fit(features, labels)


@register.probe
class Unscored:
    fit = Means.fit
    predict = Means.predict


@register.probe
class Centring(Means):
    def fit(self, features, labels):
        features -= features.mean(0)
        return super().fit(features, labels)


@register.probe
class Positions(Means):
    def predict(self, features):
        return self.positions(features)


@register.probe
class Names(Means):
    def predict(self, features):
        return super().predict(features).astype(str)


@register.probe
class Constant(Means):
    def predict(self, features):
        return np.full(len(features), self.labels[0])


@register.probe
class Percent(Means):
    def score(self, features, labels):
        return 100 * super().score(features, labels)


@register.probe
class Optimist(Means):
    def score(self, features, labels):
        return 0.5 * super().score(features, labels)


@register.probe
class Moody(Means):
    fits = 0

    def fit(self, features, labels):
        Moody.fits += 1
        self.mood = Moody.fits
        return super().fit(features, labels)

    def predict(self, features):
        answers = super().predict(features)
        answers[self.mood % len(answers)] = self.labels[(self.mood + 1) % len(self.labels)]
        return answers


@register.probe
class Crashing(Means):
    def fit(self, features, labels):
        return features.cuda()


@register.metric
def a_whole_column(bank):
    return first_column(bank)


@register.metric
def one_of_two(bank):
    return {"first": 1.0, "second": float("nan")}


@register.probe
class Ending:
    def fit(self, features, labels):
        raise SystemExit(0)

    def predict(self, features):
        return features[:, 0].astype("int64")

    def score(self, features, labels):
        return 0.0
