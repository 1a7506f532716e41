//! Places of the elements of a message in memory.

use core::fmt;
use core::str::FromStr;

use crate::error::MethodError;

/// Places of the elements of a message in memory, which a derived datatype of MPI describes unless they are contiguous.
///
/// A message consists of blocks of `block` elements, each `stride` elements behind the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageLayout {
    /// All elements in a row, without a derived datatype.
    Contiguous,
    /// Equally spaced blocks: `MPI_Type_vector`.
    Vector(Blocks),
    /// Blocks at irregular places, one in each stride: `MPI_Type_create_hindexed_block`.
    Indexed(Blocks),
    /// Equally spaced blocks that are elements and bytes in turn: `MPI_Type_create_struct`.
    Struct(Blocks),
}

/// Size and distance of blocks, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blocks {
    block: u32,
    stride: u32,
}

impl Blocks {
    /// Longest stride.
    pub const GREATEST: u32 = 1 << 20;

    /// Creates blocks; `None` unless there are elements in a block, and a stride has room for it.
    pub fn new(block: u32, stride: u32) -> Option<Self> {
        let fits = (1..=stride).contains(&block) && stride <= Self::GREATEST;
        fits.then_some(Self { block, stride })
    }

    /// Returns the number of elements of a block.
    pub fn block(self) -> u32 {
        self.block
    }

    /// Returns the distance of blocks in elements.
    pub fn stride(self) -> u32 {
        self.stride
    }
}

impl MessageLayout {
    /// Returns the blocks, unless elements are contiguous.
    pub fn blocks(self) -> Option<Blocks> {
        match self {
            Self::Contiguous => None,
            Self::Vector(blocks) | Self::Indexed(blocks) | Self::Struct(blocks) => Some(blocks),
        }
    }

    /// Returns the place of the first element of a block.
    pub(super) fn begin(self, block: usize) -> usize {
        let Some(Blocks {
            block: length,
            stride,
        }) = self.blocks()
        else {
            return block;
        };
        let stride = stride as usize;
        let shift = match self {
            // Scattered by the fractional parts of multiples of the golden ratio.
            Self::Indexed(_) => {
                let scattered = (block as u32).wrapping_mul(0x9e37_79b9) >> 8;
                scattered as usize % (stride - length as usize + 1)
            }
            _ => 0,
        };
        block * stride + shift
    }
}

/// Places of the elements of several messages in one buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    pub(super) layout: MessageLayout,
    /// Number of elements that the datatype describes, and number of places that it takes.
    pub(super) elements: usize,
    pub(super) places: usize,
}

impl Placement {
    /// Returns the places of messages of this number of elements, which is a multiple of a block.
    pub(super) fn new(layout: MessageLayout, elements: usize) -> Self {
        match layout.blocks() {
            // An empty message needs no datatype.
            Some(Blocks { block, stride }) if elements > 0 => Self {
                layout,
                elements,
                places: elements / block as usize * stride as usize,
            },
            _ => Self {
                layout: MessageLayout::Contiguous,
                elements: 1,
                places: 1,
            },
        }
    }

    /// Returns the number of places of a buffer.
    pub(super) fn extent(&self, elements: usize) -> usize {
        elements / self.elements * self.places
    }

    /// Returns the place of an element.
    pub(super) fn place(&self, element: usize) -> usize {
        let (message, element) = (element / self.elements, element % self.elements);
        let within = match self.layout.blocks() {
            None => element,
            Some(Blocks { block, .. }) => {
                let block = block as usize;
                self.layout.begin(element / block) + element % block
            }
        };
        message * self.places + within
    }
}

/// Names with blocks.
type Named = (&'static str, fn(Blocks) -> MessageLayout);

const NAMED: [Named; 3] = [
    ("vector", MessageLayout::Vector),
    ("indexed", MessageLayout::Indexed),
    ("struct", MessageLayout::Struct),
];
const CONTIGUOUS: &str = "contiguous";

impl fmt::Display for MessageLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, Blocks { block, stride }) = match *self {
            Self::Contiguous => return f.write_str(CONTIGUOUS),
            Self::Vector(blocks) => ("vector", blocks),
            Self::Indexed(blocks) => ("indexed", blocks),
            Self::Struct(blocks) => ("struct", blocks),
        };
        write!(f, "{name}/{block}/{stride}")
    }
}

impl FromStr for MessageLayout {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        if text == CONTIGUOUS {
            return Ok(Self::Contiguous);
        }
        let number = |text: &str| -> Option<u32> {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| digits)
        };
        let parsed = || {
            let mut parts = text.split('/');
            let name = parts.next()?;
            let (_, layout) = NAMED.into_iter().find(|(known, _)| *known == name)?;
            let (block, stride) = (number(parts.next()?)?, number(parts.next()?)?);
            let blocks = Blocks::new(block, stride)?;
            parts.next().is_none().then(|| layout(blocks))
        };
        parsed().ok_or_else(|| MethodError::Layout(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str, elements: usize, all: usize) -> Vec<usize> {
        let placement = Placement::new(text.parse().unwrap(), elements);
        (0..all).map(|element| placement.place(element)).collect()
    }

    #[test]
    fn elements_are_at_the_places_of_their_blocks() {
        assert_eq!(places("contiguous", 4, 6), [0, 1, 2, 3, 4, 5]);
        assert_eq!(places("vector/2/5", 4, 8), [0, 1, 5, 6, 10, 11, 15, 16]);
        assert_eq!(places("struct/1/3", 2, 4), [0, 3, 6, 9]);
        // One block in each stride, not all at the same place in it.
        let indexed = places("indexed/2/10", 40, 80);
        let blocks = indexed.chunks(2).enumerate();
        let shifts: Vec<usize> = blocks
            .map(|(number, block)| {
                assert_eq!(block[1], block[0] + 1);
                block[0] - number * 10
            })
            .collect();
        assert!(shifts.iter().all(|shift| *shift <= 8));
        assert!((0..=8).all(|shift| shifts.contains(&shift)), "{shifts:?}");
        // Every message has the same datatype.
        assert_eq!(shifts[..20], shifts[20..]);
    }

    #[test]
    fn buffers_have_room_for_all_strides() {
        let of =
            |text: &str, elements, all| Placement::new(text.parse().unwrap(), elements).extent(all);
        assert_eq!(of("contiguous", 4, 12), 12);
        assert_eq!(of("vector/2/5", 4, 12), 30);
        assert_eq!(of("vector/2/5", 0, 0), 0);
    }

    #[test]
    fn layouts_can_be_parsed() {
        for text in [
            "contiguous",
            "vector/1/2",
            "indexed/4/4",
            "struct/3/1048576",
        ] {
            let layout: MessageLayout = text.parse().unwrap();
            assert_eq!(layout.to_string(), text);
        }
        let wrong = [
            "",
            "vector",
            "vector/1",
            "vector/0/1",
            "vector/2/1",
            "vector/1/2/3",
            "row/1/2",
            "vector/+1/2",
            "contiguous/1/2",
            "struct/1/1048577",
        ];
        for text in wrong {
            let why = text.parse::<MessageLayout>().unwrap_err().to_string();
            assert!(
                why.starts_with(&format!("\"{text}\" is no layout")),
                "{why}"
            );
        }
    }
}
