//! Arguments of a call, as the registers and the stack hold them.

use core::ffi::c_void;

/// Arguments of a function of MPI: integers and pointers of one word each.
pub(crate) trait Arguments: Copy + AsRef<[usize]> + AsMut<[usize]> {
    /// Returns the argument at this position.
    #[inline(always)]
    fn at(&self, index: usize) -> usize {
        self.as_ref().get(index).copied().unwrap_or(0)
    }

    /// Replaces the argument at this position.
    #[inline(always)]
    fn set(&mut self, index: usize, value: usize) {
        if let Some(argument) = self.as_mut().get_mut(index) {
            *argument = value;
        }
    }

    /// Returns the last argument.
    #[inline(always)]
    fn last(&self) -> usize {
        self.as_ref().last().copied().unwrap_or(0)
    }

    /// Calls a function with these arguments.
    ///
    /// # Safety
    /// It must be a function that takes such arguments.
    unsafe fn pass_to(self, function: *const c_void) -> usize;
}

macro_rules! word {
    ($index:tt) => {
        usize
    };
}

macro_rules! arguments {
    ($count:literal: $($index:tt)*) => {
        impl Arguments for [usize; $count] {
            #[inline(always)]
            unsafe fn pass_to(self, function: *const c_void) -> usize {
                type Function = unsafe extern "C-unwind" fn($(word!($index)),*) -> usize;
                // SAFETY: the caller guarantees that it takes this number of words.
                let function = unsafe { core::mem::transmute::<*const c_void, Function>(function) };
                // SAFETY: as above.
                unsafe { function($(self[$index]),*) }
            }
        }
    };
}

arguments!(0: );
arguments!(1: 0);
arguments!(2: 0 1);
arguments!(3: 0 1 2);
arguments!(4: 0 1 2 3);
arguments!(5: 0 1 2 3 4);
arguments!(6: 0 1 2 3 4 5);
arguments!(7: 0 1 2 3 4 5 6);
arguments!(8: 0 1 2 3 4 5 6 7);
arguments!(9: 0 1 2 3 4 5 6 7 8);
arguments!(10: 0 1 2 3 4 5 6 7 8 9);
arguments!(11: 0 1 2 3 4 5 6 7 8 9 10);
arguments!(12: 0 1 2 3 4 5 6 7 8 9 10 11);
arguments!(13: 0 1 2 3 4 5 6 7 8 9 10 11 12);
arguments!(14: 0 1 2 3 4 5 6 7 8 9 10 11 12 13);
arguments!(15: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
arguments!(16: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
arguments!(17: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
arguments!(18: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17);
