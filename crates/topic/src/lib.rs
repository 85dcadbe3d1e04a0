//! The decisions: who is in a topic, what is admitted, where it goes.
