"""Inception-ResNet v2 (Szegedy et al., "Inception-v4, Inception-ResNet and the Impact of Residual
Connections on Learning", 2017), without the auxiliary classifier.

The shapes are those of the TensorFlow-Slim release that the usual PyTorch ports follow: 55,843,464
parameters for 1000 classes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

SMALLEST_SIDE = 75
N_FEATURES = 1536


class InceptionResNetV2(nn.Module):
    """Inception-ResNet v2, designed for images of 299 x 299; takes any size from 75 x 75 on.

    Parameters
    ----------
    n_classes : int
        Number of logits.
    in_channels : int, default=3
        Channels of the images.
    """

    def __init__(self, n_classes: int, in_channels: int = 3) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            _conv(in_channels, 32, 3, stride=2),
            _conv(32, 32, 3),
            _conv(32, 64, 3, padding=1),
            nn.MaxPool2d(3, stride=2),
            _conv(64, 80, 1),
            _conv(80, 192, 3),
            nn.MaxPool2d(3, stride=2),
        )
        self.mixed_35 = _first_mixture()  # 35 x 35 where the image is 299 x 299
        self.blocks_35 = nn.Sequential(*[_block_35() for _ in range(10)])
        self.reduction_17 = _reduction_to_17()
        self.blocks_17 = nn.Sequential(*[_block_17() for _ in range(20)])
        self.reduction_8 = _reduction_to_8()
        self.blocks_8 = nn.Sequential(*[_block_8() for _ in range(9)], _block_8(scale=1.0, activated=False))
        self.head = _conv(2080, N_FEATURES, 1)
        self.classifier = nn.Linear(N_FEATURES, n_classes)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.blocks_35(self.mixed_35(self.stem(images)))
        maps = self.blocks_17(self.reduction_17(maps))
        maps = self.head(self.blocks_8(self.reduction_8(maps)))
        logits: Tensor = self.classifier(maps.mean((2, 3)))
        return logits


class _Branches(nn.Module):
    """Several branches on the same maps; their outputs are concatenated."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, maps: Tensor) -> Tensor:
        return torch.cat([branch(maps) for branch in self.branches], dim=1)


class _Residual(nn.Module):
    """Branches whose output is projected to the width of the input, scaled down and added to it."""

    def __init__(self, mixture: _Branches, mixed: int, channels: int, scale: float, activated: bool) -> None:
        super().__init__()
        self.mixture = mixture
        self.project = nn.Conv2d(mixed, channels, kernel_size=1)
        self.scale = scale
        self.activation = nn.ReLU() if activated else nn.Identity()

    def forward(self, maps: Tensor) -> Tensor:
        changed: Tensor = self.activation(self.project(self.mixture(maps)) * self.scale + maps)
        return changed


def _conv(
    in_channels: int,
    out_channels: int,
    kernel: int | tuple[int, int],
    *,
    stride: int = 1,
    padding: int | tuple[int, int] = 0,
) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel, stride=stride, padding=padding, bias=False),
        nn.BatchNorm2d(out_channels, eps=0.001),
        nn.ReLU(),
    )


def _first_mixture() -> _Branches:  # 192 -> 320 channels
    return _Branches(
        _conv(192, 96, 1),
        nn.Sequential(_conv(192, 48, 1), _conv(48, 64, 5, padding=2)),
        nn.Sequential(_conv(192, 64, 1), _conv(64, 96, 3, padding=1), _conv(96, 96, 3, padding=1)),
        nn.Sequential(nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False), _conv(192, 64, 1)),
    )


def _block_35() -> _Residual:
    mixture = _Branches(
        _conv(320, 32, 1),
        nn.Sequential(_conv(320, 32, 1), _conv(32, 32, 3, padding=1)),
        nn.Sequential(_conv(320, 32, 1), _conv(32, 48, 3, padding=1), _conv(48, 64, 3, padding=1)),
    )
    return _Residual(mixture, 128, 320, scale=0.17, activated=True)


def _reduction_to_17() -> _Branches:  # 320 -> 1088 channels
    return _Branches(
        _conv(320, 384, 3, stride=2),
        nn.Sequential(_conv(320, 256, 1), _conv(256, 256, 3, padding=1), _conv(256, 384, 3, stride=2)),
        nn.MaxPool2d(3, stride=2),
    )


def _block_17() -> _Residual:
    long_branch = nn.Sequential(
        _conv(1088, 128, 1),
        _conv(128, 160, (1, 7), padding=(0, 3)),
        _conv(160, 192, (7, 1), padding=(3, 0)),
    )
    return _Residual(_Branches(_conv(1088, 192, 1), long_branch), 384, 1088, scale=0.10, activated=True)


def _reduction_to_8() -> _Branches:  # 1088 -> 2080 channels
    return _Branches(
        nn.Sequential(_conv(1088, 256, 1), _conv(256, 384, 3, stride=2)),
        nn.Sequential(_conv(1088, 256, 1), _conv(256, 288, 3, stride=2)),
        nn.Sequential(_conv(1088, 256, 1), _conv(256, 288, 3, padding=1), _conv(288, 320, 3, stride=2)),
        nn.MaxPool2d(3, stride=2),
    )


def _block_8(scale: float = 0.20, activated: bool = True) -> _Residual:
    long_branch = nn.Sequential(
        _conv(2080, 192, 1),
        _conv(192, 224, (1, 3), padding=(0, 1)),
        _conv(224, 256, (3, 1), padding=(1, 0)),
    )
    return _Residual(_Branches(_conv(2080, 192, 1), long_branch), 448, 2080, scale=scale, activated=activated)
