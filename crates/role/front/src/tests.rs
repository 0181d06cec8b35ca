//! Clients and connections of a loop, with the sockets of the tests.

mod door;
mod guest;
