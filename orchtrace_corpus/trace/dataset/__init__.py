"""Datasets: the traces of many logs, written as tables of Parquet files, and described and queried there."""
