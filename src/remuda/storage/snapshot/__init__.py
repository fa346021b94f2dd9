"""Snapshots in an object store: bases, increments between cuts, verification, retention.

``object_store`` is the interface to the store. ``writing`` puts objects first and the manifest
last; ``chain`` connects bases and increments; ``restoring`` reads them back, ``verifying`` checks
them, ``expiring`` deletes them. The shell is ``remuda.member.snapshots``.
"""
