//! Enums whose variants have a name each: a row for each variant.

/// Declares the enum, `ALL` of its variants in order, and the function that names one: `name`,
/// which is also how it is shown, or the one that the caller describes.
macro_rules! named {
    ($(#[$of_enum:meta])* pub enum $Enum:ident { $($row:tt)* }) => {
        $crate::rules::named::named! {
            $(#[$of_enum])*
            pub enum $Enum, name: &'static str { $($row)* }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
    (
        $(#[$of_enum:meta])*
        pub enum $Enum:ident, $(#[$of_name:meta])* $name:ident: $Name:ty {
            $($(#[$of_variant:meta])* $Variant:ident = $value:expr,)*
        }
    ) => {
        $(#[$of_enum])*
        pub enum $Enum {
            $($(#[$of_variant])* $Variant,)*
        }

        impl $Enum {
            /// All of them, each at the place that is its number.
            pub const ALL: [Self; [$(Self::$Variant),*].len()] = [$(Self::$Variant),*];

            $(#[$of_name])*
            pub const fn $name(self) -> $Name {
                match self {
                    $(Self::$Variant => $value,)*
                }
            }
        }
    };
}

pub(crate) use named;
