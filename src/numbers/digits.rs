//! Helpers that the forms of numbers and of dates share.

/// Splits a text into its leading ASCII digits and the rest.
pub(super) fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(end)
}

/// The ending of an ordinal number: "st" of 21.
pub(super) fn ending(number: u64) -> &'static str {
    match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}
