"""Views: normalization, and the strong view on top of the weak one."""

import torch

from laplaceconfidence.training.sample_views import SampleViews, build_augmentations, input_statistics


def test_inputs_are_brought_to_mean_zero_and_deviation_one() -> None:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (50, 3, 4, 4), dtype=torch.uint8, generator=generator)
    images[:, 2] = 7  # a constant channel
    views = SampleViews(*build_augmentations("none", "none", (3, 4, 4)), *input_statistics(images))
    values = views.normalized(images)
    torch.testing.assert_close(values.mean(dim=(0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(values.std(dim=(0, 2, 3), correction=0)[:2], torch.ones(2), atol=1e-4, rtol=0)
    assert torch.isfinite(values).all()


def test_the_strong_view_begins_with_the_weak_one() -> None:
    weak, (strong,) = build_augmentations(lambda x, g: x + 1, lambda x, g: x * 10, (1, 8, 8))
    inputs, generator = torch.ones(2, 1, 8, 8), torch.Generator()
    assert float(weak(inputs, generator).mean()) == 2
    assert float(strong(inputs, generator).mean()) == 20
