"""Pytest fixtures."""
