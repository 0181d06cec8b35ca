//! SEQUENCE, SET and CHOICE as structures and enumerations.
//!
//! A field is declared as `name: presence @tag Type`; presence is `required`, `optional` or `default` (the
//! default value of the Rust type), and `@tag` is the context tag, absent where the type has an own tag.
//! Elements are found by tag, so the order of elements does not matter in a SEQUENCE either.

/// Declares a SEQUENCE or a SET.
#[macro_export]
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $name:ident [$tag:expr] {
            $($(#[$field_meta:meta])* $field:ident: $presence:ident $(@ $number:literal)? $ty:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $crate::record!(@type $presence $ty),)*
            /// Unknown elements, as received.
            pub unknown: $crate::Unknown,
        }

        impl $crate::Value for $name {
            const NAME: &'static str = stringify!($name);

            fn accepts(tag: $crate::Tag) -> bool {
                tag == $tag
            }

            fn read(element: &$crate::Element<'_>) -> Result<Self, $crate::BerError> {
                let mut unknown = $crate::Unknown::default();
                $(let mut $field: Option<$ty> = None;)*
                for child in element.reader()? {
                    let child = child?;
                    $(
                        if $field.is_none() && $crate::record!(@accepts child, $ty $(, $number)?) {
                            let value = $crate::record!(@read child, $ty $(, $number)?);
                            $field = Some(value.map_err(|error| error.within(stringify!($field)))?);
                            continue;
                        }
                    )*
                    $(
                        if $crate::record!(@accepts child, $ty $(, $number)?) {
                            return Err($crate::Fault::Twice(stringify!($field)).into());
                        }
                    )*
                    unknown.keep(&child);
                }
                Ok(Self {
                    $($field: $crate::record!(@finish $presence $field),)*
                    unknown,
                })
            }

            fn write(&self, out: &mut $crate::Writer) {
                $crate::Value::write_tagged(self, $tag, out);
            }

            fn write_tagged(&self, tag: $crate::Tag, out: &mut $crate::Writer) {
                out.constructed(tag, |out| {
                    $(
                        if let Some(value) = $crate::record!(@present $presence self.$field) {
                            $crate::record!(@write value, out $(, $number)?);
                        }
                    )*
                    self.unknown.write(out);
                });
            }
        }
    };
    (@type required $ty:ty) => { $ty };
    (@type default $ty:ty) => { $ty };
    (@type optional $ty:ty) => { Option<$ty> };
    (@accepts $child:ident, $ty:ty) => { <$ty as $crate::Value>::accepts($child.tag) };
    (@accepts $child:ident, $ty:ty, $number:literal) => { $child.tag == $crate::Tag::context($number) };
    (@read $child:ident, $ty:ty) => { <$ty as $crate::Value>::read(&$child) };
    (@read $child:ident, $ty:ty, $number:literal) => { <$ty as $crate::Value>::read_tagged(&$child) };
    (@finish required $field:ident) => { $field.ok_or($crate::Fault::Missing(stringify!($field)))? };
    (@finish default $field:ident) => { $field.unwrap_or_default() };
    (@finish optional $field:ident) => { $field };
    (@present required $($field:tt)*) => { Some(&$($field)*) };
    (@present optional $($field:tt)*) => { $($field)*.as_ref() };
    (@present default $($field:tt)*) => { $crate::unless_default(&$($field)*) };
    (@write $value:ident, $out:ident) => { $crate::Value::write($value, $out) };
    (@write $value:ident, $out:ident, $number:literal) => {
        $crate::Value::write_tagged($value, $crate::Tag::context($number), $out)
    };
}

/// The value, unless it is the default value.
#[doc(hidden)]
pub fn unless_default<T: Default + PartialEq>(value: &T) -> Option<&T> {
    Some(value).filter(|value| **value != T::default())
}

/// Declares a CHOICE. A tag in brackets is an explicit tag of the CHOICE.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident: $(@ $number:literal)? $ty:ty,)*
        }
    ) => {
        $crate::choice!(@enum $(#[$meta])* $name { $($(#[$variant_meta])* $variant: $ty,)* });
        $crate::choice!(@alternatives $name { $($variant: $(@ $number)? $ty,)* });

        impl $crate::Value for $name {
            const NAME: &'static str = stringify!($name);

            fn accepts(tag: $crate::Tag) -> bool {
                $($crate::choice!(@accepts tag, $ty $(, $number)?))||*
            }

            fn read(element: &$crate::Element<'_>) -> Result<Self, $crate::BerError> {
                Self::read_alternative(element)
            }

            fn write(&self, out: &mut $crate::Writer) {
                self.write_alternative(out);
            }

            fn read_tagged(element: &$crate::Element<'_>) -> Result<Self, $crate::BerError> {
                Self::read_alternative(&element.inner()?)
            }

            fn write_tagged(&self, tag: $crate::Tag, out: &mut $crate::Writer) {
                out.constructed(tag, |out| self.write_alternative(out));
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub enum $name:ident [$tag:expr] {
            $($(#[$variant_meta:meta])* $variant:ident: $(@ $number:literal)? $ty:ty,)*
        }
    ) => {
        $crate::choice!(@enum $(#[$meta])* $name { $($(#[$variant_meta])* $variant: $ty,)* });
        $crate::choice!(@alternatives $name { $($variant: $(@ $number)? $ty,)* });

        impl $crate::Value for $name {
            const NAME: &'static str = stringify!($name);

            fn accepts(tag: $crate::Tag) -> bool {
                tag == $tag
            }

            fn read(element: &$crate::Element<'_>) -> Result<Self, $crate::BerError> {
                Self::read_alternative(&element.inner()?)
            }

            fn write(&self, out: &mut $crate::Writer) {
                $crate::Value::write_tagged(self, $tag, out);
            }

            fn write_tagged(&self, tag: $crate::Tag, out: &mut $crate::Writer) {
                out.constructed(tag, |out| self.write_alternative(out));
            }
        }
    };
    (@enum $(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant($ty),)*
        }

        $crate::choice!(@default $name { $($variant: $ty,)* });
    };
    (@default $name:ident { $first:ident: $ty:ty, $($rest:tt)* }) => {
        impl Default for $name {
            fn default() -> Self {
                Self::$first(<$ty>::default())
            }
        }
    };
    (@alternatives $name:ident { $($variant:ident: $(@ $number:literal)? $ty:ty,)* }) => {
        impl $name {
            fn read_alternative(element: &$crate::Element<'_>) -> Result<Self, $crate::BerError> {
                let tag = element.tag;
                $(
                    if $crate::choice!(@accepts tag, $ty $(, $number)?) {
                        return $crate::record!(@read element, $ty $(, $number)?).map(Self::$variant);
                    }
                )*
                Err($crate::BerError::unexpected(stringify!($name), tag))
            }

            fn write_alternative(&self, out: &mut $crate::Writer) {
                match self {
                    $(Self::$variant(value) => $crate::record!(@write value, out $(, $number)?),)*
                }
            }
        }
    };
    (@accepts $tag:ident, $ty:ty) => { <$ty as $crate::Value>::accepts($tag) };
    (@accepts $tag:ident, $ty:ty, $number:literal) => { $tag == $crate::Tag::context($number) };
}

/// Declares a SEQUENCE OF or SET OF with a tag of its own.
#[macro_export]
macro_rules! list {
    ($(#[$meta:meta])* pub struct $name:ident [$tag:expr] of $ty:ty) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub Vec<$ty>);

        impl $crate::Value for $name {
            const NAME: &'static str = stringify!($name);

            fn accepts(tag: $crate::Tag) -> bool {
                tag == $tag
            }

            fn read(element: &$crate::Element<'_>) -> Result<Self, $crate::BerError> {
                $crate::Value::read(element).map(Self)
            }

            fn write(&self, out: &mut $crate::Writer) {
                $crate::Value::write_tagged(&self.0, $tag, out);
            }

            fn write_tagged(&self, tag: $crate::Tag, out: &mut $crate::Writer) {
                $crate::Value::write_tagged(&self.0, tag, out);
            }
        }
    };
}

/// Declares a type as a known type under a new tag.
#[macro_export]
macro_rules! alias {
    ($(#[$meta:meta])* pub struct $name:ident [$tag:expr] $ty:ty) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $ty);

        impl $crate::Value for $name {
            const NAME: &'static str = stringify!($name);

            fn accepts(tag: $crate::Tag) -> bool {
                tag == $tag
            }

            fn read(element: &$crate::Element<'_>) -> Result<Self, $crate::BerError> {
                <$ty as $crate::Value>::read_tagged(element).map(Self)
            }

            fn write(&self, out: &mut $crate::Writer) {
                $crate::Value::write_tagged(&self.0, $tag, out);
            }

            fn write_tagged(&self, tag: $crate::Tag, out: &mut $crate::Writer) {
                $crate::Value::write_tagged(&self.0, tag, out);
            }
        }
    };
}
