//! Detects the machine's vector instructions, in one place.
//!
//! Each set of instructions is a type without data. Only its `detect` creates a value, and only on
//! a machine that has the whole set. So a value proves that a function compiled for that set may be
//! called; the callers' `SAFETY` comments refer to it.

/// Sets of processor instructions, as types that only their detection creates.
#[cfg(target_arch = "x86_64")]
macro_rules! sets {
    ($($(#[$about:meta])* $name:ident: $($feature:tt),+;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name(());

        impl $name {
            /// The proof, if this machine has all of them.
            #[inline]
            pub(crate) fn detect() -> Option<Self> {
                ($(is_x86_feature_detected!($feature))&&+).then_some($name(()))
            }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
sets! {
    /// 256 bits.
    Avx2: "avx2";
    /// 256 bits, with fused multiplication and addition.
    Avx2Fma: "avx2", "fma";
    /// 512 bits, the foundation alone.
    Avx512Foundation: "avx512f";
    /// 512 bits, with shorter vectors and 64-bit integers: most functions are compiled for this
    /// set.
    Avx512: "avx512f", "avx512dq", "avx512vl";
    /// 512 bits with products of 8-bit integers.
    Avx512Vnni: "avx512f", "avx512vnni";
}

/// Defines a function that calls another, which is compiled for the widest vectors of this machine:
/// `vectorised! { fn name[generics] = body(argument: Type) -> Type }`. The body is portable,
/// `#[inline(always)]`, and has loops over lanes that the vectoriser recognises. Without fused
/// multiply-adds, it gives equal bits everywhere.
macro_rules! vectorised {
    (
        $(#[$about:meta])*
        $see:vis fn $name:ident$([$($generic:tt)*])? = $($body:ident)::+($($given:ident: $kind:ty),*) $(-> $result:ty)?
    ) => {
        $(#[$about])*
        $see fn $name$(<$($generic)*>)?($($given: $kind),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
                fn avx512$(<$($generic)*>)?($($given: $kind),*) $(-> $result)? {
                    $($body)::+($($given),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2$(<$($generic)*>)?($($given: $kind),*) $(-> $result)? {
                    $($body)::+($($given),*)
                }
                if $crate::support::simd::Avx512::detect().is_some() {
                    // SAFETY: the features were detected.
                    return unsafe { avx512($($given),*) };
                }
                if $crate::support::simd::Avx2::detect().is_some() {
                    // SAFETY: the feature was detected.
                    return unsafe { avx2($($given),*) };
                }
            }
            $($body)::+($($given),*)
        }
    };
}
pub(crate) use vectorised;

/// Matrices of 8-bit integers (AMX), and all of [`Avx512Vnni`].
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amx(());

#[cfg(target_arch = "x86_64")]
impl Amx {
    /// The proof, if the processor has the instructions and the system lets this process use them.
    /// Linux requires a request, because a thread that uses them has 8 KiB more state to save.
    pub(crate) fn detect() -> Option<Self> {
        const TILE: u32 = 1 << 24;
        const INT8: u32 = 1 << 25;
        Avx512Vnni::detect()?;
        // SAFETY: every x86-64 has the instruction. (Since Rust 1.94 the compiler knows that.)
        #[allow(unused_unsafe)]
        let leaf = unsafe { std::arch::x86_64::__cpuid_count(7, 0) };
        (leaf.edx & (TILE | INT8) == TILE | INT8 && granted()).then_some(Amx(()))
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn granted() -> bool {
    use std::ffi::{c_int, c_long};
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    const ARCH_PRCTL: c_long = 158;
    const ARCH_REQ_XCOMP_PERM: c_int = 0x1023;
    const TILE_DATA: c_long = 18;
    // SAFETY: the call takes two numbers and touches no memory; a system that does not support it
    // returns an error.
    unsafe { syscall(ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 }
}

#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn granted() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    type Set = BTreeSet<String>;

    /// The quoted strings in a line, split at commas too.
    fn quoted(line: &str) -> Set {
        let strings = line.split('"').skip(1).step_by(2);
        let features = strings.flat_map(|features| features.split(','));
        features.map(str::to_owned).collect()
    }

    fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.display().to_string(), text));
            }
        }
    }

    /// If a set of features is detected in two ways or in part, the code is undefined behaviour on
    /// a machine that has only that part, and no test on another machine finds it.
    #[test]
    fn features_are_detected_here_alone_and_in_the_sets_that_functions_are_compiled_for() {
        let mut files = Vec::new();
        sources(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut files,
        );
        let (here, others): (Vec<_>, Vec<_>) = files
            .iter()
            .partition(|(path, _)| path.ends_with("simd.rs"));
        let (rules, _) = here[0].1.split_once("mod tests").unwrap();
        let sets: Vec<Set> = rules
            .lines()
            .filter(|line| line.ends_with("\";"))
            .map(quoted)
            .collect();
        assert_eq!(sets.len(), 5);
        let mut compiled = 0;
        for (path, text) in others {
            assert!(
                !text.contains("_feature_detected!"),
                "{path} asks by itself"
            );
            for line in text
                .lines()
                .filter(|line| line.contains("#[target_feature("))
            {
                assert!(sets.contains(&quoted(line)), "{path}: no proof of {line}");
                compiled += 1;
            }
        }
        assert!(compiled > 25, "{compiled}");
    }
}
