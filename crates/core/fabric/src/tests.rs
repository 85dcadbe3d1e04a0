mod contract;
mod simulated;

pub(crate) use contract::{Place, keeps_the_contract};
