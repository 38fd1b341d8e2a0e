"""Estimates over blocks of rows: more data than fits in memory, on one machine or on a Dask cluster."""
