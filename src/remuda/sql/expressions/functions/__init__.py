"""Binds functions that ask the session, the catalog or the cluster, rather than compute."""
