//! The nouns: kind, capability, envelope, operation, refusal and ids.
