"""Which members form the cluster: the shell of ``remuda.cluster``.

``membership`` proposes and installs views, ``joining`` and ``meeting`` admit members, ``forming``
begins a cluster, ``recovery`` and ``takeover`` bring partitions back, ``catalog_service`` commits
definitions.
"""
