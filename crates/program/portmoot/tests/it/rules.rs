//! Rules that decide proposals on their authors' authority, through the running binary.

mod after;
mod authors;
mod bank;
mod budgets;
mod by_hand;
mod clients;
mod counted;
mod day;
mod direct;
mod files;
mod killed;
mod learned;
mod learned_page;
mod past;
mod paused;
mod rejected;
mod renewed;
mod restarts;
mod roads;
mod servers;
mod several;
mod shown;
mod spots;
mod suspended;
mod tightening;
mod tried;
