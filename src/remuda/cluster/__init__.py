"""Membership and placement as pure state machines: ``step(now, event) -> effects``.

``membership`` sends heartbeats and suspects members, ``agreement`` decides the next view by a
majority, ``lease`` limits the right to serve. ``replicas`` and ``balancing`` choose the copies of
a view, ``movement`` the next copy to make. The shell is ``remuda.member.membership``.
"""
