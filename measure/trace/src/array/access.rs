//! Order in which the arrays of a trace are read.

/// Order in which arrays are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Access {
    /// Few arrays at a time, each from its begin or its end: the kernel reads ahead.
    InOrder,
    /// All arrays, each by a few values at a time: what the kernel would read ahead of
    /// each does not fit into memory together.
    #[default]
    InTurns,
}
