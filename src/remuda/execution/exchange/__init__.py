"""The two ends of a stream between fragments.

``outbox`` encodes batches and sends as many as credit permits; ``inbox`` puts received batches in
order and grants credit. The rules of ordinals and credit are in ``remuda.query.stream``.
"""
