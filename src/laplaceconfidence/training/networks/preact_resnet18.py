"""PreAct ResNet-18 (He et al., "Identity Mappings in Deep Residual Networks", 2016) for small images."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from laplaceconfidence.training.networks.preact_block import PreActBlock, conv3x3

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
        self.stem: nn.Module = conv3x3(in_channels, _WIDTHS[0])
        if normalized_stem:
            self.stem = nn.Sequential(self.stem, nn.BatchNorm2d(_WIDTHS[0]), nn.ReLU())
        blocks = [PreActBlock(_WIDTHS[0], _WIDTHS[0]), PreActBlock(_WIDTHS[0], _WIDTHS[0])]
        for narrow, wide in pairwise(_WIDTHS):
            blocks += [PreActBlock(narrow, wide, stride=2), PreActBlock(wide, wide)]
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(_WIDTHS[-1], n_classes)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.blocks(self.stem(images))
        logits: Tensor = self.classifier(maps.mean((2, 3)))
        return logits
