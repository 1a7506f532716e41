//! Decoder of Perfetto files for tests, written after Perfetto's documentation, independently of
//! the writer.

use std::collections::BTreeMap;

/// Field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

type ProtoMessage = Vec<(u64, Field)>;

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("there is another byte");
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            break;
        }
    }
    number
}

fn decode(mut bytes: &[u8]) -> ProtoMessage {
    let mut fields = vec![];
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let mut take = |length: usize| {
            let (taken, rest) = bytes.split_at(length);
            bytes = rest;
            taken.to_vec()
        };
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => Field::Number(u64::from_le_bytes(take(8).try_into().unwrap())),
            2 => {
                let length = varint(&mut bytes);
                let (taken, rest) = bytes.split_at(length as usize);
                bytes = rest;
                Field::Bytes(taken.to_vec())
            }
            other => panic!("there is no wire type {other} here"),
        };
        fields.push((tag >> 3, field));
    }
    fields
}

fn number(message: &ProtoMessage, wanted: u64) -> Option<u64> {
    message
        .iter()
        .find(|(field, _)| *field == wanted)
        .map(|(_, value)| match value {
            Field::Number(number) => *number,
            Field::Bytes(_) => panic!("field {wanted} is a number"),
        })
}

fn bytes(message: &ProtoMessage, wanted: u64) -> Vec<&[u8]> {
    message
        .iter()
        .filter(|(field, _)| *field == wanted)
        .map(|(_, value)| match value {
            Field::Bytes(bytes) => &bytes[..],
            Field::Number(_) => panic!("field {wanted} has a length"),
        })
        .collect()
}

fn child(message: &ProtoMessage, wanted: u64) -> Option<ProtoMessage> {
    bytes(message, wanted).first().map(|bytes| decode(bytes))
}

fn text(message: &ProtoMessage, wanted: u64) -> Option<String> {
    bytes(message, wanted)
        .first()
        .map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

/// Slice or instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecodedEvent {
    /// Name of the thread.
    pub(super) thread: String,
    pub(super) name: String,
    pub(super) category: String,
    pub(super) begin: u64,
    /// End; `None` if the slice never ends.
    pub(super) end: Option<u64>,
    pub(super) is_instant: bool,
    /// Number of slices around it.
    pub(super) depth: usize,
    /// Annotations, such as `tag=5`.
    pub(super) annotations: Vec<String>,
}

/// Contents of a file.
#[derive(Debug, Default)]
pub(super) struct Viewed {
    /// `NAME pid` of each process, in the order of their ranks.
    pub(super) processes: Vec<String>,
    /// `NAME tid of pid` of each thread, in the order of their ranks.
    pub(super) threads: Vec<String>,
    /// Slices and instants in the order of their times.
    pub(super) shown: Vec<DecodedEvent>,
    /// Values of counters in the order of their times: `THREAD: NAME [UNIT] TIME VALUE`.
    pub(super) values: Vec<String>,
    /// Indices of the ends of each arrow.
    pub(super) arrows: Vec<[usize; 2]>,
}

/// Interned strings, by the field in `InternedData` and the number.
type Interned = BTreeMap<(u64, u64), String>;

fn intern(interned: &mut Interned, data: &ProtoMessage) {
    for (field, value) in data {
        let Field::Bytes(entry) = value else {
            panic!("interned data are messages")
        };
        let entry = decode(entry);
        let iid = number(&entry, 1).expect("there is a number");
        let before = interned.insert((*field, iid), text(&entry, 2).expect("there is a text"));
        assert!(iid > 0 && before.is_none(), "{field}: {iid} is taken");
    }
}

/// Decodes a file, whose packets must be valid for Perfetto.
pub(super) fn view(file: &[u8]) -> Viewed {
    let mut viewed = Viewed::default();
    let (mut interned, mut threads, mut events) = (Interned::new(), BTreeMap::new(), vec![]);
    let mut counters = BTreeMap::new();
    let mut orders = [vec![], vec![]];
    for (at, (field, packet)) in decode(file).into_iter().enumerate() {
        let Field::Bytes(packet) = packet else {
            panic!("packets are messages")
        };
        let packet = decode(&packet);
        assert_eq!(
            (field, number(&packet, 10), number(&packet, 13)),
            (1, Some(1), Some(if at == 0 { 1 } else { 2 }))
        );
        if let Some(data) = child(&packet, 12) {
            intern(&mut interned, &data);
        }
        if let Some(track) = child(&packet, 60) {
            let (uuid, order) = (number(&track, 1).unwrap(), number(&track, 12));
            if let Some(process) = child(&track, 3) {
                let name = text(&process, 6).unwrap();
                orders[0].push((order, format!("{name} {}", number(&process, 1).unwrap())));
            } else if let Some(thread) = child(&track, 4) {
                let name = text(&thread, 5).unwrap();
                let [pid, tid] = [1, 2].map(|field| number(&thread, field).unwrap());
                orders[1].push((order, format!("{name} {tid} of {pid}")));
                assert_eq!(threads.insert(uuid, name), None);
            } else if let Some(counter) = child(&track, 8) {
                let thread = &threads[&number(&track, 5).unwrap()];
                let unit = text(&counter, 6).unwrap_or_default();
                let name = format!("{thread}: {} [{unit}]", text(&track, 2).unwrap());
                assert_eq!(counters.insert(uuid, name), None);
            } else {
                assert_eq!(
                    (uuid, number(&track, 19), number(&track, 20)),
                    (0, Some(1), Some(1))
                );
            }
        }
        if let Some(event) = child(&packet, 11) {
            events.push((number(&packet, 8).expect("an event has a time"), event));
        }
    }
    // As in Perfetto: sorted by time, in a stable way.
    events.sort_by_key(|(time, _)| *time);
    let (mut open, mut flows) = (
        BTreeMap::<u64, Vec<usize>>::new(),
        BTreeMap::<u64, usize>::new(),
    );
    for (time, event) in events {
        let track = number(&event, 11).unwrap();
        if number(&event, 9) == Some(4) {
            let [whole, real] = [30, 44].map(|field| number(&event, field));
            let value = match (whole, real) {
                (Some(whole), None) => (whole as i64).to_string(),
                (None, Some(real)) => format!("{:?}", f64::from_bits(real)),
                other => panic!("{other:?}"),
            };
            viewed
                .values
                .push(format!("{} {time} {value}", counters[&track]));
            continue;
        }
        let open = open.entry(track).or_default();
        let annotations = annotations(&event, &interned);
        let kind = number(&event, 9).unwrap();
        if kind == 2 {
            let ended = open.pop().expect("something has begun");
            viewed.shown[ended].end = Some(time);
            viewed.shown[ended].annotations.extend(annotations);
            continue;
        }
        let inline = text(&event, 23);
        let name = inline.unwrap_or_else(|| interned[&(2, number(&event, 10).unwrap())].clone());
        let category = interned[&(1, number(&event, 3).unwrap())].clone();
        let is_instant = kind == 3;
        let (thread, end, depth) = (
            threads[&track].clone(),
            is_instant.then_some(time),
            open.len(),
        );
        viewed.shown.push(DecodedEvent {
            thread,
            name,
            category,
            begin: time,
            end,
            is_instant,
            depth,
            annotations,
        });
        let this = viewed.shown.len() - 1;
        if !is_instant {
            assert_eq!(kind, 1);
            open.push(this);
        }
        if let Some(other) = number(&event, 47).and_then(|flow| flows.insert(flow, this)) {
            viewed.arrows.push([other, this]);
        }
    }
    let in_order = |mut names: Vec<(Option<u64>, String)>| {
        names.sort();
        names.into_iter().map(|(_, name)| name).collect()
    };
    [viewed.processes, viewed.threads] = orders.map(in_order);
    viewed
}

fn annotations(event: &ProtoMessage, interned: &Interned) -> Vec<String> {
    let one = |bytes: &[u8]| {
        let annotation = decode(bytes);
        let name = &interned[&(3, number(&annotation, 1).unwrap())];
        let [truth, positive, signed, word] = [2, 3, 4, 17].map(|field| number(&annotation, field));
        let value = match (truth, positive, signed, word) {
            (Some(1), None, None, None) => "true".to_owned(),
            (None, Some(number), None, None) => number.to_string(),
            (None, None, Some(number), None) => (number as i64).to_string(),
            (None, None, None, Some(iid)) => interned[&(29, iid)].clone(),
            other => panic!("{name}: {other:?}"),
        };
        format!("{name}={value}")
    };
    bytes(event, 4).into_iter().map(one).collect()
}
