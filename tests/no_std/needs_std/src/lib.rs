//! A crate that is not `no_std`.
