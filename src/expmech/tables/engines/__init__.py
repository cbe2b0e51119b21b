"""Aggregates computed where the rows live: DuckDB, PostgreSQL and Spark, through Ibis."""
