//! The pump, the listeners and the supervision of upstreams.
