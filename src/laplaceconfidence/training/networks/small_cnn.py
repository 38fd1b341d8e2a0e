"""A small network for small images that trains in seconds on a CPU."""

from __future__ import annotations

from torch import Tensor, nn

SMALLEST_SIDE = 4


class SmallCNN(nn.Module):
    """Three convolutions of growing width with two poolings between them; about 95,000 parameters.

    Takes images of any size from 4 x 4 on; it is meant for small ones, from 8 x 8 to 64 x 64.

    Parameters
    ----------
    n_classes : int
        Number of logits.
    in_channels : int, default=3
        Channels of the images.
    widths : tuple of int, default=(32, 64, 128)
        Channels of the three convolutions.
    """

    def __init__(
        self, n_classes: int, in_channels: int = 3, widths: tuple[int, int, int] = (32, 64, 128)
    ) -> None:
        super().__init__()
        first, second, third = widths
        self.features = nn.Sequential(
            _conv(in_channels, first),
            nn.MaxPool2d(2),
            _conv(first, second),
            nn.MaxPool2d(2),
            _conv(second, third),
        )
        self.classifier = nn.Linear(third, n_classes)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(images).mean((2, 3)))
        return logits


def _conv(in_channels: int, out_channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )
