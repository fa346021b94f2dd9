"""The protobuf messages of all channels.

The ``.proto`` files are the source; ``docs/generate_messages.py`` generates the modules from them.
``user`` is the channel of clients; ``control`` and ``data`` connect members; ``common`` and
``vectors`` hold shared messages. docs/protocol.md explains each one.
"""
