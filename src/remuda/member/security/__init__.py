"""The protection of a member's channels: TLS, the cluster's secret, users, and the audit file.

``defences`` reads the settings once, ``users_file`` follows the file of users, ``audit`` writes
logins, definitions and refusals. ``base.access`` decides which request a user may send.
"""
