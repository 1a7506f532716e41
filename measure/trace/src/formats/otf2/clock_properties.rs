//! Time span of an archive, which its global definitions name.

use downbeat_otf2::raw::{CLOCK_PROPERTIES, Record, put_record};

use super::records::copy_records;

/// Returns the file of global definitions with a span that covers these times in ticks, too; `None` if
/// it does already.
pub(super) fn covering(
    file: &[u8],
    chunk: usize,
    span: [u64; 2],
) -> Result<Option<Vec<u8>>, String> {
    let mut is_other = false;
    let copied = copy_records(file, chunk, |record| {
        let larger = (record.kind == CLOCK_PROPERTIES).then(|| renewed(record, span));
        let larger = larger.flatten();
        is_other |= larger.is_some();
        Ok(Some(larger.map_or(record.bytes.into(), Into::into)))
    });
    let file = copied?.finish().map_err(|why| why.to_string())?;
    Ok(is_other.then_some(file))
}

/// Returns a record with a larger span, if it must be larger.
fn renewed(record: Record<'_>, [first, last]: [u64; 2]) -> Option<Vec<u8>> {
    let mut data = record.fields();
    let (resolution, offset, length) = (data.u64()?, data.u64()?, data.u64()?);
    let end = offset.saturating_add(length);
    let (new_offset, new_end) = (offset.min(first), end.max(last));
    if (new_offset, new_end) == (offset, end) {
        return None;
    }
    let (mut fields, mut renewed) = (vec![], vec![]);
    for number in [resolution, new_offset, new_end - new_offset] {
        record.order.write_number(number, &mut fields);
    }
    // Fields of later versions.
    fields.extend(data.remaining());
    put_record(CLOCK_PROPERTIES, &fields, record.order, &mut renewed);
    Some(renewed)
}

#[cfg(test)]
mod tests {
    use downbeat_otf2::raw::{Order, RecordWriter};

    use super::*;

    const CHUNK: usize = 256;

    fn file(order: Order, numbers: &[u64]) -> Vec<u8> {
        let mut fields = vec![];
        numbers
            .iter()
            .for_each(|number| order.write_number(*number, &mut fields));
        let mut to = RecordWriter::new(vec![], CHUNK, order);
        to.add(&[99, 1, 7]).unwrap();
        to.add(&[&[CLOCK_PROPERTIES, fields.len() as u8], &fields[..]].concat())
            .unwrap();
        to.finish().unwrap()
    }

    #[test]
    fn a_span_grows_to_cover_all_times_and_else_stays() {
        for order in [Order::Little, Order::Big] {
            let old = file(order, &[1_000_000_000, 500, 2_500, u64::MAX]);
            for inside in [[500, 3_000], [700, 800]] {
                assert_eq!(covering(&old, CHUNK, inside), Ok(None));
            }
            for (span, offset, length) in [
                ([400, 3_000], 400, 2_600),
                ([600, 70_000], 500, 69_500),
                ([0, u64::MAX], 0, u64::MAX),
            ] {
                let new = file(order, &[1_000_000_000, offset, length, u64::MAX]);
                assert_eq!(covering(&old, CHUNK, span), Ok(Some(new)), "{span:?}");
            }
        }
    }
}
