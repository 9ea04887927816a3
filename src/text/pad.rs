//! Response times that are multiples of a fixed time, so that they reveal little about a text.

use std::time::{Duration, Instant};

/// The instant at which a call that began at `start` and is done at `now` may answer. It is the
/// first positive multiple of `pad` after the start that is not before `now`. If `pad` is zero, it
/// is `now`.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// let (start, pad) = (Instant::now(), Duration::from_millis(100));
/// let done = start + Duration::from_millis(130);
/// let answer = fastdx::text::padded(start, done, pad);
/// assert_eq!(answer, start + Duration::from_millis(200));
/// ```
pub fn padded(start: Instant, now: Instant, pad: Duration) -> Instant {
    if pad.is_zero() {
        return now;
    }
    let elapsed = now.saturating_duration_since(start).as_nanos();
    let whole = elapsed.div_ceil(pad.as_nanos()).max(1);
    // Whole nanoseconds: less than the elapsed time plus one `pad`.
    let nanoseconds = u64::try_from(whole * pad.as_nanos()).unwrap_or(u64::MAX);
    start
        .checked_add(Duration::from_nanos(nanoseconds))
        .unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_next_whole_multiple() {
        let start = Instant::now();
        let at = |nanoseconds: u64| start + Duration::from_nanos(nanoseconds);
        for pad in [1, 7, 1000, 3_600_000_000_000] {
            for done in [0, 1, 6, 7, 8, 999, 1000, 1001, 86_400_000_000_000] {
                let found = padded(start, at(done), Duration::from_nanos(pad));
                let found = found.duration_since(start).as_nanos() as u64;
                assert!(found >= done && found.is_multiple_of(pad) && found >= pad);
                assert!(found == pad || found - done < pad, "{pad} {done} {found}");
            }
        }
        // Clocks that do not advance, and no padding at all.
        assert_eq!(
            padded(at(5), start, Duration::from_nanos(10)),
            at(5) + Duration::from_nanos(10)
        );
        assert_eq!(padded(start, at(3), Duration::ZERO), at(3));
    }
}
