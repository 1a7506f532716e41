//! Definition of enums of records by the fields of each kind.

/// Defines an enum of records. A kind has a code, a name and fields in the order of the file. A field
/// with a value was added by a later version of the format: where it is missing, it has this value. A kind
/// whose older layout is different is decoded and encoded by a module.
macro_rules! records {
    (
        $(#[$meta:meta])*
        $Records:ident {
            $(
                $(#[$doc:meta])*
                $kind:literal $name:ident { $($field:ident: $type:ty $(= $missing:expr)?),* $(,)? } $(by $module:ident)?
            )*
        }
    ) => {
        $(#[$meta])*
        #[expect(missing_docs, reason = "fields have the names of OTF2's documentation")]
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $Records<'a> {
            $(
                $(#[$doc])*
                $name { $($field: $type),* },
            )*
            /// Record of a kind that is not known.
            Unknown {
                /// Kind of the record.
                kind: u8,
                /// Data without kind and length.
                data: &'a [u8],
            },
        }

        impl<'a> $Records<'a> {
            /// Returns the kind of the record.
            pub const fn kind(&self) -> u8 {
                match self {
                    $(Self::$name { .. } => $kind,)*
                    Self::Unknown { kind, .. } => *kind,
                }
            }

            /// Returns the name of the kind.
            pub const fn name(&self) -> &'static str {
                Self::name_of(self.kind())
            }

            /// Returns the name of a kind of records.
            pub const fn name_of(kind: u8) -> &'static str {
                match kind {
                    $($kind => stringify!($name),)*
                    _ => "Unknown",
                }
            }

            /// Decodes the data of a record; `None` if they are truncated or not valid.
            #[inline]
            pub fn decode(kind: u8, mut from: Decoder<'a>) -> Option<Self> {
                let from = &mut from;
                Some(match kind {
                    $($kind => $crate::records::records!(
                        @decode from, $Records $name { $($field: $type $(= $missing)?),* } $($module)?
                    ),)*
                    kind => Self::Unknown { kind, data: from.rest() },
                })
            }

            /// Appends the data of the record, without kind and length.
            pub fn encode(&self, order: Order, to: &mut Vec<u8>) {
                match self {
                    $(Self::$name { $($field),* } => $crate::records::records!(
                        @encode self, order, to, [$($field)*] $($module)?
                    ),)*
                    Self::Unknown { data, .. } => to.extend_from_slice(data),
                }
            }
        }
    };

    (@decode $from:ident, $Records:ident $name:ident { $($field:ident: $type:ty $(= $missing:expr)?),* }) => {
        $Records::$name { $($field: $crate::records::records!(@field $from, $type $(, $missing)?)),* }
    };
    (@decode $from:ident, $Records:ident $name:ident { $($fields:tt)* } $module:ident) => {
        $module::decode($from)?
    };
    (@field $from:ident, $type:ty) => { <$type as Field<'_>>::decode($from)? };
    (@field $from:ident, $type:ty, $missing:expr) => {
        if $from.is_over() { $missing } else { <$type as Field<'_>>::decode($from)? }
    };
    (@encode $self:ident, $order:ident, $to:ident, [$($field:ident)*]) => {{ $($field.encode($order, $to);)* }};
    (@encode $self:ident, $order:ident, $to:ident, [$($field:ident)*] $module:ident) => {{
        let _ = ($($field,)*);
        $module::encode($self, $order, $to)
    }};
}

pub(crate) use records;
