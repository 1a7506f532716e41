//! Colours of calls by their kinds.

use downbeat_trace::CallKind;

/// Class of a bar of this kind, and share in percent: 25, 50, 75 or 100.
pub(super) fn class(kind: CallKind, percent: u8) -> String {
    let (whole, colour) = match kind {
        CallKind::Send => ("m", "c0"),
        CallKind::Receive => ("m", "c5"),
        CallKind::Completion => ("deep", "c0"),
        CallKind::Barrier => ("m", "c4"),
        CallKind::AllToAll => ("m", "c2"),
        CallKind::Rooted => ("m", "c3"),
        CallKind::OneSided => ("deep", "c2"),
        CallKind::InputOutput => ("deep", "c3"),
        CallKind::Other => ("deep", "c4"),
        CallKind::Tracer => ("deep", "c5"),
        CallKind::User if percent <= 50 => return "still".to_owned(),
        CallKind::User => return "lack".to_owned(),
    };
    let shade = match (percent, whole) {
        (0..=25, _) => "h1",
        (26..=50, _) => "h2",
        (51..=75, "m") => "h4",
        _ => whole,
    };
    format!("{shade} {colour}")
}

/// Class of messages; those that are received before they are sent have a colour.
pub(super) const fn message_class(is_reversed: bool) -> &'static str {
    if is_reversed { "thin c1" } else { "message" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_differ_and_small_shares_are_lighter() {
        let mut classes = CallKind::ALL.map(|kind| class(kind, 100)).to_vec();
        classes.sort_unstable();
        classes.dedup();
        assert_eq!(classes.len(), CallKind::ALL.len());
        assert_eq!(class(CallKind::Send, 25), "h1 c0");
        assert_eq!(class(CallKind::Send, 75), "h4 c0");
        assert_eq!(class(CallKind::Completion, 75), "deep c0");
    }
}
