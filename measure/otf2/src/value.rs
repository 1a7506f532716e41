//! Values of any type, with their types: of attributes, metrics and properties.

use crate::field::Field;
use crate::raw::{Decoder, Order};
use crate::references::{
    AttributeRef, CallingContextRef, CommRef, GroupRef, InterruptGeneratorRef, IoFileRef,
    IoHandleRef, LocationGroupRef, LocationRef, MetricRef, ParameterRef, RegionRef, RmaWinRef,
    SourceCodeLocationRef, StringRef,
};

/// Defines the types of values with their codes and decoders.
macro_rules! values {
    ($($code:literal $name:ident($type:ty): $decode:expr, $encode:expr;)*) => {
        /// Value with its type.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[expect(missing_docs, reason = "the names are those of the types")]
        #[non_exhaustive]
        pub enum Value {
            $($name($type),)*
            /// Value of an unknown type.
            Other {
                /// Code of the type.
                code: u8,
                value: u64,
            },
        }

        impl Value {
            /// Returns the type.
            pub const fn value_type(&self) -> ValueType {
                match self {
                    $(Self::$name(_) => ValueType($code),)*
                    Self::Other { code, .. } => ValueType(*code),
                }
            }

            /// Decodes a value of this type without the type.
            pub(crate) fn of_type(ValueType(code): ValueType, from: &mut Decoder<'_>) -> Option<Self> {
                Some(match code {
                    $($code => Self::$name($decode(from)?),)*
                    code => Self::Other { code, value: from.u64()? },
                })
            }

            /// Appends the value without its type.
            pub(crate) fn encode_alone(&self, order: Order, to: &mut Vec<u8>) {
                match self {
                    $(Self::$name(value) => $encode(value, order, to),)*
                    Self::Other { value, .. } => order.write_number(*value, to),
                }
            }
        }

        /// Type of a value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct ValueType(
            /// Code in the file.
            pub u8,
        );

        #[expect(non_upper_case_globals, reason = "the names are those of the values")]
        #[expect(missing_docs, reason = "the names are those of the types")]
        impl ValueType {
            $(pub const $name: Self = Self($code);)*
        }
    };
}

/// Appends the lowest bytes of a number.
fn put_fixed<const LENGTH: usize>(number: u64, order: Order, to: &mut Vec<u8>) {
    let bytes = order.bytes(number);
    match order {
        Order::Little => to.extend_from_slice(&bytes[..LENGTH]),
        Order::Big => to.extend_from_slice(&bytes[8 - LENGTH..]),
    }
}

values! {
    1 U8(u8): Decoder::u8, Field::encode;
    2 U16(u16): |from: &mut Decoder<'_>| from.fixed(2).map(|value| value as u16),
        |value: &u16, order, to| put_fixed::<2>((*value).into(), order, to);
    3 U32(u32): Decoder::u32, Field::encode;
    4 U64(u64): Decoder::u64, Field::encode;
    5 I8(i8): |from: &mut Decoder<'_>| from.u8().map(|value| value as i8),
        |value: &i8, order, to| (*value as u8).encode(order, to);
    6 I16(i16): |from: &mut Decoder<'_>| from.fixed(2).map(|value| value as i16),
        |value: &i16, order, to| put_fixed::<2>(*value as u64, order, to);
    7 I32(i32): |from: &mut Decoder<'_>| from.u32().map(|value| value as i32),
        |value: &i32, order: Order, to| order.write_number((*value as u32).into(), to);
    8 I64(i64): Field::decode, Field::encode;
    9 F32(f32): |from: &mut Decoder<'_>| from.fixed(4).map(|bits| f32::from_bits(bits as u32)),
        |value: &f32, order, to| put_fixed::<4>(value.to_bits().into(), order, to);
    10 F64(f64): |from: &mut Decoder<'_>| from.fixed(8).map(f64::from_bits),
        |value: &f64, order, to| put_fixed::<8>(value.to_bits(), order, to);
    11 String(StringRef): Field::decode, Field::encode;
    12 Attribute(AttributeRef): Field::decode, Field::encode;
    13 Location(LocationRef): Field::decode, Field::encode;
    14 Region(RegionRef): Field::decode, Field::encode;
    15 Group(GroupRef): Field::decode, Field::encode;
    16 Metric(MetricRef): Field::decode, Field::encode;
    17 Comm(CommRef): Field::decode, Field::encode;
    18 Parameter(ParameterRef): Field::decode, Field::encode;
    19 RmaWin(RmaWinRef): Field::decode, Field::encode;
    20 SourceCodeLocation(SourceCodeLocationRef): Field::decode, Field::encode;
    21 CallingContext(CallingContextRef): Field::decode, Field::encode;
    22 InterruptGenerator(InterruptGeneratorRef): Field::decode, Field::encode;
    23 IoFile(IoFileRef): Field::decode, Field::encode;
    24 IoHandle(IoHandleRef): Field::decode, Field::encode;
    25 LocationGroup(LocationGroupRef): Field::decode, Field::encode;
}

impl Field<'_> for ValueType {
    fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        from.u8().map(Self)
    }

    fn encode(&self, _: Order, to: &mut Vec<u8>) {
        to.push(self.0);
    }
}

impl Field<'_> for Value {
    fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        let of_type = ValueType::decode(from)?;
        Self::of_type(of_type, from)
    }

    fn encode(&self, order: Order, to: &mut Vec<u8>) {
        self.value_type().encode(order, to);
        self.encode_alone(order, to);
    }
}

/// Value of a metric. Other than elsewhere, all types are encoded as numbers of variable length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricValue {
    /// Signed number.
    I64(i64),
    /// Unsigned number.
    U64(u64),
    /// Floating-point number.
    F64(f64),
    /// Value of a type that metrics do not have.
    Other(ValueType, u64),
}

impl Field<'_> for MetricValue {
    fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        let (of_type, bits) = (ValueType::decode(from)?, from.u64()?);
        Some(match of_type {
            ValueType::I64 => Self::I64(bits as i64),
            ValueType::U64 => Self::U64(bits),
            ValueType::F64 => Self::F64(f64::from_bits(bits)),
            other => Self::Other(other, bits),
        })
    }

    fn encode(&self, order: Order, to: &mut Vec<u8>) {
        let (of_type, bits) = match *self {
            Self::I64(value) => (ValueType::I64, value as u64),
            Self::U64(value) => (ValueType::U64, value),
            Self::F64(value) => (ValueType::F64, value.to_bits()),
            Self::Other(of_type, bits) => (of_type, bits),
        };
        of_type.encode(order, to);
        order.write_number(bits, to);
    }
}
