//! Enums whose variants have names.

/// Declares an enum without fields, the list of its variants, a function that returns
/// their names, and its encoding.
macro_rules! named {
    (
        $(#[$outer:meta])*
        $access:vis enum $type:ident {$(
            $(#[$meta:meta])*
            $variant:ident = $name:literal,
        )+}

        $(#[$of_function:meta])*
        fn $function:ident
    ) => {
        $(#[$outer])*
        $access enum $type {$(
            $(#[$meta])*
            $variant,
        )+}

        impl $type {
            /// All of them, in the order of their numbers.
            $access const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            $(#[$of_function])*
            $access const fn $function(self) -> &'static str {
                match self {$(
                    Self::$variant => $name,
                )+}
            }
        }

        $crate::encoding::encode_as! {
            $type as u8: |value| value as u8, |number| Self::ALL.get(usize::from(number)).copied();
        }
    };
}

pub(crate) use named;
