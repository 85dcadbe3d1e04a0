mod contract;
mod simulated;

pub(crate) use contract::{Place, Stranger, keeps_the_contract};
