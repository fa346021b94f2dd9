"""The life of a query on several members, as pure state machines.

``registry`` starts, completes, checks and cancels queries; ``stream`` counts the batches and the
credit of one stream; ``ending`` chooses the work that an operator's request ends. The shell is
``remuda.member.queries``.
"""
