//! Definition of records by the fields of each kind.

/// Defines a struct for each kind of records, and an enum of all of them. A kind has a code, a
/// name and fields in the order of the file. A field with a value was added by a later version of
/// the format: where it is missing, it has this value. A kind whose older layout is different,
/// marked `by hand`, implements [`Field`](crate::field::Field) itself.
macro_rules! records {
    (
        $(#[$meta:meta])*
        $Records:ident {
            $(
                $(#[$doc:meta])*
                $kind:literal $name:ident $(<$life:lifetime>)? $(by $hand:ident)?
                { $($field:ident: $type:ty $(= $missing:expr)?),* $(,)? }
            )*
        }
    ) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq)]
            pub struct $name $(<$life>)? {
                $(
                    /// Field of this name in OTF2's documentation.
                    pub $field: $type,
                )*
            }

            $crate::records::records!(
                @field $name $(<$life>)? $(by $hand)? { $($field: $type $(= $missing)?),* }
            );
        )*

        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $Records<'a> {
            $(
                $(#[$doc])*
                $name($name $(<$life>)?),
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
                    $(Self::$name(_) => $kind,)*
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
                Some(match kind {
                    $($kind => Self::$name(Field::decode(&mut from)?),)*
                    kind => Self::Unknown { kind, data: from.remaining() },
                })
            }

            /// Appends the data of the record, without kind and length.
            pub fn encode(&self, order: Order, to: &mut Vec<u8>) {
                match self {
                    $(Self::$name(record) => record.encode(order, to),)*
                    Self::Unknown { data, .. } => to.extend_from_slice(data),
                }
            }
        }
    };

    (@field $name:ident $(<$life:lifetime>)? by hand $fields:tt) => {};
    (@field $name:ident $(<$life:lifetime>)? { $($field:ident: $type:ty $(= $missing:expr)?),* }) => {
        impl<'a> Field<'a> for $name $(<$life>)? {
            #[inline]
            fn decode(_from: &mut Decoder<'a>) -> Option<Self> {
                Some(Self { $($field: $crate::records::records!(@decode _from, $type $(, $missing)?)),* })
            }

            fn encode(&self, _order: Order, _to: &mut Vec<u8>) {
                $(self.$field.encode(_order, _to);)*
            }
        }
    };
    (@decode $from:ident, $type:ty) => { <$type as Field<'_>>::decode($from)? };
    (@decode $from:ident, $type:ty, $missing:expr) => {
        if $from.is_over() { $missing } else { <$type as Field<'_>>::decode($from)? }
    };
}

pub(crate) use records;
