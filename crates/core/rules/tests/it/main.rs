//! Tests of the rules from outside: vectors, attacks on rules and learner, properties, evaluation.

mod attacks;
mod evaluation;
mod properties;
mod support;
mod vectors;
