"""Advisory locks: the member with the lowest number of a view hosts them; every member knows the
ones that its own clients hold, and tells them to the host of the next view (decision 0087).
"""
