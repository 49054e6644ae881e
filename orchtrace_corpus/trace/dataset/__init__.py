"""Many traces at once: logs imported side by side into tables of Parquet files, described and queried there."""
