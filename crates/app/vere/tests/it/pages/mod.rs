//! Pages of the documentation, typed as they stand: the commands of a page with the lines shown below them, a shell
//! that types them, and the comparison of outputs.

mod compare;
mod parse;
mod shell;

pub(crate) use parse::{Step, steps};
pub(crate) use shell::Shell;
