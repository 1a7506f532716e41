//! Datatypes of messages, and reductions.

use mpi::collective::SystemOperation;
use mpi::ffi::{MPI_Datatype, MPI_Op};
use mpi::raw::AsRaw;
use mpi::traits::Equivalence;

use super::constants::{byte, char, int, signed_char};
use crate::names::name_values;

/// Datatype of the elements of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Datatype {
    /// `MPI_BYTE`: bits without a numeric value.
    Byte,
    /// `MPI_CHAR`: characters, which have no reduction.
    Char,
    /// `MPI_SIGNED_CHAR`.
    SignedChar,
    /// `MPI_INT`.
    Int,
    /// `MPI_INT8_T`.
    Int8,
    /// `MPI_INT16_T`.
    Int16,
    /// `MPI_INT32_T`.
    Int32,
    /// `MPI_INT64_T`, also named `long`.
    Int64,
    /// `MPI_UINT8_T`.
    Uint8,
    /// `MPI_UINT16_T`.
    Uint16,
    /// `MPI_UINT32_T`.
    Uint32,
    /// `MPI_UINT64_T`.
    Uint64,
    /// `MPI_FLOAT`.
    Float,
    /// `MPI_DOUBLE`.
    Double,
}

name_values! {
    Datatype, "datatype", "long" means Int64:
    Byte = "byte",
    Char = "char",
    SignedChar = "signed-char",
    Int = "int",
    Int8 = "int8",
    Int16 = "int16",
    Int32 = "int32",
    Int64 = "int64",
    Uint8 = "uint8",
    Uint16 = "uint16",
    Uint32 = "uint32",
    Uint64 = "uint64",
    Float = "float",
    Double = "double",
}

/// Kind of number that a datatype represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberKind {
    None,
    /// Bits that can be combined.
    Bits,
    Signed,
    Unsigned,
    Float,
}

impl Datatype {
    /// Returns the size of an element in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Byte | Self::Char | Self::SignedChar | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int | Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
        }
    }

    /// Returns true if MPI can compare and swap elements (MPI 4.0, section 12.3.4).
    pub const fn can_be_compared(self) -> bool {
        !matches!(self.meaning(), NumberKind::None | NumberKind::Float)
    }

    /// Returns true if MPI defines the reduction for the datatype (MPI 4.0, section 6.9.2).
    pub const fn allows(self, reduction: Reduction) -> bool {
        use Reduction::{Band, Bor, Bxor, Land, Lor, Lxor, Max, Min, Prod, Sum};
        match (self.meaning(), reduction) {
            (NumberKind::Bits, Band | Bor | Bxor)
            | (NumberKind::Signed | NumberKind::Unsigned, _) => true,
            (NumberKind::None | NumberKind::Bits, _) => false,
            (NumberKind::Float, Sum | Prod | Min | Max) => true,
            (NumberKind::Float, Land | Lor | Lxor | Band | Bor | Bxor) => false,
        }
    }

    /// Returns the default reduction: bitwise or, which costs least, and the sum for floating-point numbers.
    pub const fn usual_reduction(self) -> Reduction {
        if self.allows(Reduction::Bor) {
            Reduction::Bor
        } else {
            Reduction::Sum
        }
    }

    pub(super) const fn meaning(self) -> NumberKind {
        match self {
            Self::Byte => NumberKind::Bits,
            Self::Char => NumberKind::None,
            Self::SignedChar | Self::Int => NumberKind::Signed,
            Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64 => NumberKind::Signed,
            Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64 => NumberKind::Unsigned,
            Self::Float | Self::Double => NumberKind::Float,
        }
    }

    pub(super) fn raw(self) -> MPI_Datatype {
        match self {
            Self::Byte => byte(),
            Self::Char => char(),
            Self::SignedChar => signed_char(),
            Self::Int => int(),
            Self::Int8 => i8::equivalent_datatype().as_raw(),
            Self::Int16 => i16::equivalent_datatype().as_raw(),
            Self::Int32 => i32::equivalent_datatype().as_raw(),
            Self::Int64 => i64::equivalent_datatype().as_raw(),
            Self::Uint8 => u8::equivalent_datatype().as_raw(),
            Self::Uint16 => u16::equivalent_datatype().as_raw(),
            Self::Uint32 => u32::equivalent_datatype().as_raw(),
            Self::Uint64 => u64::equivalent_datatype().as_raw(),
            Self::Float => f32::equivalent_datatype().as_raw(),
            Self::Double => f64::equivalent_datatype().as_raw(),
        }
    }
}

/// Reduction that combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// `MPI_SUM`.
    Sum,
    /// `MPI_PROD`.
    Prod,
    /// `MPI_MIN`.
    Min,
    /// `MPI_MAX`.
    Max,
    /// `MPI_LAND`: logical and.
    Land,
    /// `MPI_LOR`: logical or.
    Lor,
    /// `MPI_LXOR`: logical exclusive or.
    Lxor,
    /// `MPI_BAND`: bitwise and.
    Band,
    /// `MPI_BOR`: bitwise or.
    Bor,
    /// `MPI_BXOR`: bitwise exclusive or.
    Bxor,
}

name_values! {
    Reduction, "reduction":
    Sum = "sum",
    Prod = "prod",
    Min = "min",
    Max = "max",
    Land = "land",
    Lor = "lor",
    Lxor = "lxor",
    Band = "band",
    Bor = "bor",
    Bxor = "bxor",
}

impl Reduction {
    /// Returns true if the results are truth values.
    pub(super) const fn is_logical(self) -> bool {
        matches!(self, Self::Land | Self::Lor | Self::Lxor)
    }

    pub(super) fn raw(self) -> MPI_Op {
        match self {
            Self::Sum => SystemOperation::sum(),
            Self::Prod => SystemOperation::product(),
            Self::Min => SystemOperation::min(),
            Self::Max => SystemOperation::max(),
            Self::Land => SystemOperation::logical_and(),
            Self::Lor => SystemOperation::logical_or(),
            Self::Lxor => SystemOperation::logical_xor(),
            Self::Band => SystemOperation::bitwise_and(),
            Self::Bor => SystemOperation::bitwise_or(),
            Self::Bxor => SystemOperation::bitwise_xor(),
        }
        .as_raw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_parsed() {
        for datatype in Datatype::ALL {
            assert_eq!(datatype.to_string().parse(), Ok(datatype));
        }
        for reduction in Reduction::ALL {
            assert_eq!(reduction.to_string().parse(), Ok(reduction));
        }
        assert_eq!("long".parse(), Ok(Datatype::Int64));
        let why = "Sum".parse::<Reduction>().unwrap_err();
        assert_eq!(
            why.to_string(),
            "there is no reduction \"Sum\"; there are sum, prod, min, max, land, lor, lxor, band, bor, bxor"
        );
    }

    /// Compares with the table of the standard for C integers, floating point and bytes.
    #[test]
    fn allowed_reductions_agree_with_mpi() {
        let allowed = |datatype: Datatype| -> Vec<&str> {
            Reduction::ALL
                .into_iter()
                .filter(|by| datatype.allows(*by))
                .map(Reduction::name)
                .collect()
        };
        assert_eq!(allowed(Datatype::Byte), ["band", "bor", "bxor"]);
        assert_eq!(allowed(Datatype::Char), [""; 0]);
        assert_eq!(allowed(Datatype::Float), ["sum", "prod", "min", "max"]);
        assert_eq!(allowed(Datatype::Double), allowed(Datatype::Float));
        assert_eq!(allowed(Datatype::Uint16).len(), Reduction::ALL.len());
        assert_eq!(allowed(Datatype::Int64).len(), Reduction::ALL.len());
        assert!(
            Datatype::ALL
                .into_iter()
                .filter(|datatype| *datatype != Datatype::Char)
                .all(|datatype| datatype.allows(datatype.usual_reduction()))
        );
    }
}
