"""A small residual network for photographs that two CPU cores can train."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn
from torch.nn.functional import relu

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
        self.stem = _conv3x3(in_channels, widths[0])
        stages = [_ResidualBlock(widths[0], widths[0]) for _ in range(blocks[0])]
        for (narrow, wide), n_blocks in zip(pairwise(widths), blocks[1:], strict=True):
            stages += [_ResidualBlock(narrow, wide, stride=2)]
            stages += [_ResidualBlock(wide, wide) for _ in range(n_blocks - 1)]
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


class _ResidualBlock(nn.Module):
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
