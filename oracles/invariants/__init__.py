"""Invariants: general truths, judged on every history.

One module per family. An invariant is fed events in their order and tells its violations at the
end; it keeps what it needs of live objects only, so memory does not grow with the history.
"""
