//! Mounts: calls of the kernel become [`vere_ports::files::Call`], replies go back.
