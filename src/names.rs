//! Enumerations that have names in a text: on the command line, in Python.

/// Names the variants of an enumeration: `ALL`, `name`, and `FromStr` with an error that names the
/// parameter and lists what there is.
macro_rules! named {
    ($type:ty, $parameter:literal, $($variant:path => $name:literal),+ $(,)?) => {
        impl $type {
            /// Every variant with its name.
            pub const ALL: &[(Self, &'static str)] = &[$(($variant, $name)),+];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $($variant => $name),+
                }
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(name: &str) -> $crate::Result<Self> {
                let found = Self::ALL.iter().find(|(_, known)| *known == name);
                found.map(|(variant, _)| *variant).ok_or_else(|| {
                    let names: Vec<String> =
                        Self::ALL.iter().map(|(_, name)| format!("'{name}'")).collect();
                    let expected = format!("one of {}", names.join(", "));
                    $crate::Error::parameter($parameter, expected, format!("{name:?}"))
                })
            }
        }
    };
}

pub(crate) use named;
