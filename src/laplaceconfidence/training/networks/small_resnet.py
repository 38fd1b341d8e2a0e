"""A small residual network for photographs that two CPU cores can train."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn
from torch.nn.functional import relu

from laplaceconfidence.training.networks.preact_block import PreActBlock, conv3x3

SMALLEST_SIDE = 8


class SmallResNet(nn.Module):
    """Three stages of residual blocks, each of twice the width and half the size; about 750,000 parameters.

    A 3 x 3 stem without pooling, blocks of two 3 x 3 convolutions after their normalization
    ("pre-activation", He et al., 2016), a last normalization, the mean over the image, and a linear layer.
    Takes images of any size from 8 x 8 on; it is meant for small ones, from 24 x 24 to 96 x 96.

    Parameters
    ----------
    n_classes : int
        Number of logits.
    in_channels : int, default=3
        Channels of the images.
    widths : tuple of int, default=(32, 64, 128)
        Channels of the stages.
    blocks : tuple of int, default=(1, 3, 2)
        Residual blocks of each stage.
    """

    def __init__(
        self,
        n_classes: int,
        in_channels: int = 3,
        widths: tuple[int, ...] = (32, 64, 128),
        blocks: tuple[int, ...] = (1, 3, 2),
    ) -> None:
        super().__init__()
        self.stem = conv3x3(in_channels, widths[0])
        stages = [PreActBlock(widths[0], widths[0]) for _ in range(blocks[0])]
        for (narrow, wide), n_blocks in zip(pairwise(widths), blocks[1:], strict=True):
            stages += [PreActBlock(narrow, wide, stride=2)]
            stages += [PreActBlock(wide, wide) for _ in range(n_blocks - 1)]
        self.blocks = nn.Sequential(*stages)
        self.norm = nn.BatchNorm2d(widths[-1])
        self.classifier = nn.Linear(widths[-1], n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        maps = relu(self.norm(self.blocks(self.stem(images))))
        logits: Tensor = self.classifier(maps.mean((2, 3)))
        return logits
