//! A crate that needs std.
