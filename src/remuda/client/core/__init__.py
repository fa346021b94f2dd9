"""The state that all parts of one client share: the view, the session, and the rules of retries.

``core`` sends statements to members, ``tries`` decides which requests are sent again,
``view_source`` learns the view.
"""
