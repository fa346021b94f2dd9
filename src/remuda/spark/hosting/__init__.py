"""Members on the executors of a Spark cluster.

``start`` runs on the driver and ``task`` in each Spark task; ``rendezvous`` decides who founds the
cluster and who joins it.
"""
