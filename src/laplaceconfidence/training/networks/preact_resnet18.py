"""PreAct ResNet-18 (He et al., "Identity Mappings in Deep Residual Networks", 2016) for small images."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn
from torch.nn.functional import relu

_WIDTHS = (64, 128, 256, 512)


class PreActResNet18(nn.Module):
    """The version for CIFAR: a 3 x 3 stem without pooling; 11,171,146 parameters for 10 classes.

    As in the implementations that are common in work on noisy labels, the output of the last block is pooled
    without another normalization. Images may be of any size from 8 x 8 on.

    Parameters
    ----------
    n_classes : int
        Number of logits.
    in_channels : int, default=3
        Channels of the images.
    normalized_stem : bool, default=False
        Whether the first convolution is followed by a normalization and an activation, as in the published
        code of DivideMix and M-correction, where the first block then normalizes once more.
    """

    def __init__(self, n_classes: int, in_channels: int = 3, *, normalized_stem: bool = False) -> None:
        super().__init__()
        self.stem: nn.Module = _conv3x3(in_channels, _WIDTHS[0])
        if normalized_stem:
            self.stem = nn.Sequential(self.stem, nn.BatchNorm2d(_WIDTHS[0]), nn.ReLU())
        blocks = [_PreActBlock(_WIDTHS[0], _WIDTHS[0]), _PreActBlock(_WIDTHS[0], _WIDTHS[0])]
        for narrow, wide in pairwise(_WIDTHS):
            blocks += [_PreActBlock(narrow, wide, stride=2), _PreActBlock(wide, wide)]
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(_WIDTHS[-1], n_classes)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.blocks(self.stem(images))
        logits: Tensor = self.classifier(maps.mean((2, 3)))
        return logits


class _PreActBlock(nn.Module):
    """Two convolutions, each after its normalization, added to a shortcut."""

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(in_channels)
        self.conv1 = _conv3x3(in_channels, out_channels, stride)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.conv2 = _conv3x3(out_channels, out_channels)
        self.shortcut: nn.Module | None = None
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Conv2d(in_channels, out_channels, kernel_size=1, stride=stride, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        activated = relu(self.norm1(maps))
        kept = maps if self.shortcut is None else self.shortcut(activated)
        changed: Tensor = self.conv2(relu(self.norm2(self.conv1(activated))))
        return changed + kept


def _conv3x3(in_channels: int, out_channels: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=stride, padding=1, bias=False)
