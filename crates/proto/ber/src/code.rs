//! INTEGERs and ENUMERATEDs with named values. Values without a name are kept.

/// Declares a type with named values.
#[macro_export]
macro_rules! codes {
    ($(#[$meta:meta])* pub enum $name:ident [$tag:expr] { $($value:ident = $number:literal, $text:literal;)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $(
                #[doc = concat!("`", $text, "`")]
                $value,
            )*
            /// A value outside the recommendation.
            Other(u32),
        }

        impl $name {
            /// The value with this number.
            #[must_use]
            pub const fn from_code(code: u32) -> Self {
                match code {
                    $($number => Self::$value,)*
                    other => Self::Other(other),
                }
            }

            /// The number.
            #[must_use]
            pub const fn code(self) -> u32 {
                match self {
                    $(Self::$value => $number,)*
                    Self::Other(other) => other,
                }
            }

            /// The name in the recommendation.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$value => Some($text),)*
                    Self::Other(_) => None,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::from_code(0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => out.write_str(name),
                    None => write!(out, "{}", self.code()),
                }
            }
        }

        impl $crate::Value for $name {
            const NAME: &'static str = stringify!($name);

            fn accepts(tag: $crate::Tag) -> bool {
                tag == $tag
            }

            fn read(element: &$crate::Element<'_>) -> Result<Self, $crate::BerError> {
                <u32 as $crate::Value>::read(element).map(Self::from_code)
            }

            fn write(&self, out: &mut $crate::Writer) {
                $crate::Value::write_tagged(self, $tag, out);
            }

            fn write_tagged(&self, tag: $crate::Tag, out: &mut $crate::Writer) {
                $crate::Value::write_tagged(&self.code(), tag, out);
            }
        }
    };
}
