//! From a token to a participant.
