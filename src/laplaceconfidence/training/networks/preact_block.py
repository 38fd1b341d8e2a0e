"""The residual block of He et al., "Identity Mappings in Deep Residual Networks", 2016."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import relu


class PreActBlock(nn.Module):
    """Two convolutions, each after its normalization, added to a shortcut.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels before and after.
    stride : int, default=1
        Of the first convolution, and of the shortcut.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(in_channels)
        self.conv1 = conv3x3(in_channels, out_channels, stride)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.conv2 = conv3x3(out_channels, out_channels)
        self.shortcut: nn.Module | None = None
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Conv2d(in_channels, out_channels, kernel_size=1, stride=stride, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        activated = relu(self.norm1(maps))
        kept = maps if self.shortcut is None else self.shortcut(activated)
        changed: Tensor = self.conv2(relu(self.norm2(self.conv1(activated))))
        return changed + kept


def conv3x3(in_channels: int, out_channels: int, stride: int = 1) -> nn.Conv2d:
    """A 3 x 3 convolution that keeps the size of the maps (or halves it), without a bias."""
    return nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=stride, padding=1, bias=False)
