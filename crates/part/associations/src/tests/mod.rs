//! Both roles over loopback.

mod chaos;
mod help;
mod histories;
mod many;
mod measured;
mod pools;
mod refusals;
mod rusty;
mod secured;
mod silent;
mod story;
mod tshark;
