"""Augmentation of whole batches on their device; operations and magnitudes are drawn per image.

An augmentation is called as ``augmentation(images, generator)`` and returns images of the same type.
Images are uint8 of shape (batch, channels, height, width), or floating point in [0, 1], which is rounded to
256 gray levels. Random numbers are drawn on the CPU, so that nothing waits for the device and one seed gives
the same batch on every device; pixels never leave their device. A call costs a few
milliseconds however small the images are, so tiny images are best augmented many at a time.
"""
