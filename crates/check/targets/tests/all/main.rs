//! The targets on a stable toolchain, and the decoders against the tables in `vectors/`.

mod smoke;
mod vectors;
