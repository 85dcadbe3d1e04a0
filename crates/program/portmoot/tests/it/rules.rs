//! Rules that decide proposals on their authors' authority, through the running binary.

mod after;
mod authors;
mod bank;
mod budgets;
mod clients;
mod counted;
mod direct;
mod files;
mod learned;
mod learned_page;
mod past;
mod restarts;
mod roads;
mod servers;
mod shown;
mod suspended;
mod tightening;
mod tried;
