//! Rules that decide proposals on their authors' authority, through the running binary.

mod authors;
mod bank;
mod budgets;
mod clients;
mod direct;
mod files;
mod paused;
mod rejected;
mod restarts;
mod roads;
mod servers;
mod shown;
mod suspended;
mod tightening;
mod tried;
