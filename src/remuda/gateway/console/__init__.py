"""The console: a web page that shows the cluster, and its server.

It reaches members as a client, as the user who has logged in to it. ``topics`` lists the relations
that the page follows, ``feeds`` asks them for all open pages of a user and sends differences,
``statements`` runs SQL, ``sessions`` knows who has logged in, ``console`` has the routes. The page
itself is in ``page``: plain files for the browser.
"""
