"""The store of one map on one member, its times, counters and statistics.

``map_store`` joins chunks, indexes and staged rows; ``transfer`` copies versions to other members,
``change_log`` reads the changes of the map.
"""
