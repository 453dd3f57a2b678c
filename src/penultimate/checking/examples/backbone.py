"""A backbone: from float images [n 3 h w] to features [n num_features].

    penultimate check mine.py
    penultimate run smoke --plugin mine.py --set "backbones=plain(width=12)"

The classifier belongs to the objective: leave it out. Initial weights come from torch's default generator.

A file that it reads must be declared, by its path beside this one, as in
@register.backbone(files=("start.pt",)), so that results are computed again when it changes.
"""

from torch import nn

from penultimate import register


@register.backbone(name="plain")
class Plain(nn.Module):
    """Three convolutions, each with batch normalisation and a rectifier, then the mean over the image."""

    def __init__(self, *, width=32):
        super().__init__()
        widths = (3, width, 2 * width, 4 * width)
        layers = [
            layer
            for i in range(3)
            for layer in (
                nn.Conv2d(widths[i], widths[i + 1], 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(widths[i + 1]),
                nn.ReLU(),
            )
        ]
        self.body = nn.Sequential(*layers)
        self.num_features = widths[-1]

    def forward(self, images):
        return self.body(images).mean((2, 3))
