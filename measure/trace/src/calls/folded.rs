//! Regions that stand for several calls in a row.

use core::fmt;

/// Number of calls that one region stands for: a tracer records a loop of tests that find
/// nothing as one region, and its number as a note right after the enter.
///
/// ```
/// use downbeat_trace::calls::FoldedCalls;
///
/// assert_eq!(FoldedCalls(17).to_string(), "17 calls");
/// assert_eq!(FoldedCalls::parse("17 calls"), Some(FoldedCalls(17)));
/// assert_eq!(FoldedCalls::parse("failed"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedCalls(pub u64);

impl FoldedCalls {
    /// Parses the text of a note; `None` if it is another note.
    pub fn parse(note: &str) -> Option<Self> {
        let number = note.strip_suffix(" calls")?;
        number.parse().ok().map(Self)
    }
}

/// Formats the text of the note.
impl fmt::Display for FoldedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls", self.0)
    }
}
