"""The authors' ResNet-50 in TensorFlow's own operations: an oracle, written from the notes on their release.

Variables are named by TensorFlow 1's automatic numbering in the order in which the network is built, and each
has a moving average; a checkpoint holds both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
AVERAGE = "/ExponentialMovingAverage"


class Network:
    """A network with random weights; `width` is the channels of the first group's inner convolutions."""

    def __init__(self, loss: str, outputs: int, width: int, seed: int) -> None:
        self.loss, self.outputs, self.width = loss, outputs, width
        self.generator = np.random.default_rng(seed)
        self.values: dict[str, np.ndarray] = {}
        self.numbers = {"conv2d": 0, "batch_normalization": 0}

    def __call__(self, images: np.ndarray) -> dict[str, np.ndarray]:
        """Return the features, the outputs and the class probabilities of images [n h w 3] in 0..1."""
        import tensorflow as tf

        self.numbers = dict.fromkeys(self.numbers, 0)
        x = tf.constant((images - MEAN) / STD, tf.float32)
        x = tf.nn.relu(self._norm(self._conv(x, 64, 7, 2)))
        x = tf.nn.max_pool2d(x, 3, 2, "SAME")
        for group, blocks in enumerate((3, 4, 6, 3)):
            for block in range(blocks):
                x = self._block(
                    x, self.width * 2**group, stride=2 if group and not block else 1, first=not block
                )
        features = tf.reduce_mean(x, (1, 2))
        outputs = self._outputs(features)
        classes = outputs[:, 1:]
        scores = tf.math.log_sigmoid(classes) if self.loss == "sigmoid" else classes
        probabilities = tf.nn.softmax(scores)
        return {
            "features": features.numpy(),
            "logits": classes.numpy(),
            "probabilities": probabilities.numpy(),
        }

    def save(self, prefix: Path, average: bool = True) -> None:
        """Write a checkpoint by name, with other values for the variables than for their averages."""
        import tensorflow as tf

        v1 = tf.compat.v1
        named = {name: np.zeros_like(values) for name, values in self.values.items()}
        if average:
            named |= {name + AVERAGE: values for name, values in self.values.items()}
        prefix.parent.mkdir(parents=True, exist_ok=True)
        with tf.Graph().as_default(), v1.Session() as session:
            variables = [v1.get_variable(name, initializer=values) for name, values in named.items()]
            session.run(v1.global_variables_initializer())
            v1.train.Saver(variables).save(session, str(prefix), write_meta_graph=False)

    def _variable(self, name: str, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
        if name not in self.values:
            self.values[name] = self.generator.uniform(low, high, shape).astype(np.float32)
        return self.values[name]

    def _next(self, kind: str) -> str:
        number = self.numbers[kind]
        self.numbers[kind] += 1
        return f"{kind}_{number}" if number else kind

    def _conv(self, x: Any, filters: int, size: int, stride: int) -> Any:
        import tensorflow as tf

        inputs = int(x.shape[-1])
        bound = (6 / (size * size * inputs)) ** 0.5
        kernel = self._variable(
            f"{self._next('conv2d')}/kernel", (size, size, inputs, filters), -bound, bound
        )
        if stride > 1:
            before = (size - 1) // 2
            x = tf.pad(x, [[0, 0], [before, size - 1 - before], [before, size - 1 - before], [0, 0]])
        return tf.nn.conv2d(x, kernel, stride, "VALID" if stride > 1 else "SAME")

    def _norm(self, x: Any) -> Any:
        import tensorflow as tf

        name, shape = self._next("batch_normalization"), (int(x.shape[-1]),)
        gamma, beta = (
            self._variable(f"{name}/gamma", shape, 0.5, 1.0),
            self._variable(f"{name}/beta", shape, -0.2, 0.2),
        )
        mean = self._variable(f"{name}/moving_mean", shape, -0.2, 0.2)
        variance = self._variable(f"{name}/moving_variance", shape, 0.5, 2.0)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-5)

    def _block(self, x: Any, filters: int, stride: int, first: bool) -> Any:
        import tensorflow as tf

        shortcut = self._norm(self._conv(x, 4 * filters, 1, stride)) if first else x
        x = tf.nn.relu(self._norm(self._conv(x, filters, 1, 1)))
        x = tf.nn.relu(self._norm(self._conv(x, filters, 3, stride)))
        return tf.nn.relu(self._norm(self._conv(x, 4 * filters, 1, 1)) + shortcut)

    def _outputs(self, features: Any) -> Any:
        import tensorflow as tf

        is_cosine = self.loss == "cosine_softmax"
        name = "dense/normalized_kernel" if is_cosine else "dense/kernel"
        kernel = self._variable(name, (int(features.shape[-1]), self.outputs), -0.5, 0.5)
        bias = self._variable("dense/bias", (self.outputs,), -0.5, 0.5)
        if is_cosine:
            return (features @ tf.math.l2_normalize(kernel, 0) + bias) / 0.05
        outputs = features @ kernel + bias
        if self.loss == "logit_normalization":
            return outputs / (0.04 * tf.norm(outputs, axis=1, keepdims=True))
        return outputs - np.log(self.outputs).astype(np.float32) if self.loss == "sigmoid" else outputs
