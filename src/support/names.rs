//! Enumerations whose variants have names in text: on the command line and in Python.

/// Names the variants of an enumeration: `ALL`, `name`, and `FromStr`, whose error names the
/// parameter and lists the names. `also` adds a second name for a variant. `not` explains why a
/// name that people try is not accepted.
macro_rules! named {
    (
        $type:ty, $parameter:literal, $($variant:path => $name:literal),+ $(,)?
        $(; also $alias:literal => $of:path)?
        $(; not $wrong:literal => $why:literal)?
    ) => {
        impl $type {
            /// Every variant.
            pub const ALL: [Self; [$($name),+].len()] = [$($variant),+];

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
                match name {
                    $($name => Ok($variant),)+
                    $($alias => Ok($of),)?
                    _ => {
                        let names = [$($name),+ $(, $alias)?].map(|name| format!("'{name}'"));
                        #[allow(unused_mut)]
                        let mut expected = format!("one of {}", names.join(", "));
                        $(if name == $wrong {
                            expected.push_str($why);
                        })?
                        Err($crate::Error::parameter($parameter, expected, format!("{name:?}")))
                    }
                }
            }
        }

        impl $crate::support::table::Field for $type {
            fn read(name: &'static str, value: &serde_json::Value) -> $crate::Result<Self> {
                String::read(name, value)?.parse()
            }

            fn written(&self) -> Option<serde_json::Value> {
                Some(self.name().into())
            }
        }
    };
}

pub(crate) use named;
