//! A first day with the program: what was a dead end for a new user is refused, said or taken over
//! (`reference/found/newcomer.md`).

mod background;
mod causes;
mod itself;
mod next_steps;
mod own_file;
mod sign_ins;
mod texts;
