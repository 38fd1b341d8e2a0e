"""Encoders: raw texts, images and columns of tables become feature vectors."""
