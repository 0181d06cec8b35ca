//! Runs protocol scripts: files of `C:` and `S:` lines that a protocol expert can review without
//! knowing our code. The format is described in `docs/internals/scripts.md`.
//!
//! The same script runs against the bare machine, in this process with virtual time and a small
//! made-up world ([`bare`]), and against a listening daemon ([`daemon`]). A script names its needs
//! beyond every daemon (a limit, a right, hours of waiting) at the top, and is skipped with that
//! reason if the daemon lacks the need.
//!
//! In reading order: [`Script`] (the file), [`Subject`] (the system under test), [`run`], [`bare`],
//! [`daemon`].
//!
//! ```
//! use vere_script::{Script, bare};
//!
//! let script = Script::parse("noop", "S: 220 $host *\nC: NOOP\nS: 250 2.0.0 *\n")?;
//! bare::run(&script, bare::Pieces::Whole)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bare;
pub mod daemon;

mod parse;
mod runner;
mod template;

pub use daemon::run_against;
pub use parse::{Action, ParseError, Requirement, Script, Side, Statement};
pub use runner::{Dialect, Failure, Heard, Subject, SubjectError, Verdict, run};
pub use template::{Template, TemplateError};
