"""Aggregates computed where the rows live: DuckDB, DataFusion, PostgreSQL and Spark, by Ibis."""
