"""LISTEN and NOTIFY over all members (decision 0089).

``queue`` answers members that follow the commits that notify, ``service`` follows them for the
sessions of this member and sends, ``inbox`` has the news of one session.
"""
