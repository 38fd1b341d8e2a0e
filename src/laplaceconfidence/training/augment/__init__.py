"""Augmentation of whole batches on their device: every image its own operations and magnitudes.

An augmentation is called as ``augmentation(images, generator)`` and returns images of the same type.
Images are uint8 of shape (batch, channels, height, width), or floating point in [0, 1], which is worked on
in 256 gray levels. What is drawn for each image is a NumPy array on the host, so that nothing waits for the
device and one seed gives one batch on every device; pixels never leave their device. A call costs a few
milliseconds however small the images are, so tiny images are best augmented many at a time.
"""
