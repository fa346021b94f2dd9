"""Codecs of the files that outlive a process: log segments and snapshot objects. Pure."""
