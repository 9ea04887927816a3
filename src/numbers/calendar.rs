//! Days of the Gregorian calendar, counted from 1 January 1970 (Hinnant, "chrono-compatible low-level date
//! algorithms": eras of 400 years that begin on 1 March).

/// Days in 400 years, and from 1 March of the year 0 to 1 January 1970.
const ERA: i64 = 146_097;
const EPOCH: i64 = 719_468;

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

impl std::fmt::Display for Civil {
    /// As 2026-05-03.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl Civil {
    /// The day, if the calendar has it.
    pub fn new(year: i64, month: u8, day: u8) -> Option<Self> {
        let made = Civil { year, month, day };
        let there = (1..=12).contains(&month) && day >= 1 && made.exists();
        there.then_some(made)
    }

    fn exists(self) -> bool {
        self.day <= 28 || Civil::of(self.days()) == self
    }

    /// The number of the day; 1 January 1970 is 0.
    pub fn days(self) -> i64 {
        // Years begin in March, so that a leap day is the last of its year.
        let month = i64::from(self.month);
        let year = self.year - i64::from(month <= 2);
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(self.day) - 1;
        let (era, within) = (year.div_euclid(400), year.rem_euclid(400));
        era * ERA + within * 365 + within / 4 - within / 100 + of_year - EPOCH
    }

    /// The day with a number.
    pub fn of(days: i64) -> Self {
        let (era, day) = (
            (days + EPOCH).div_euclid(ERA),
            (days + EPOCH).rem_euclid(ERA),
        );
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let of_year = day - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Civil {
            year: year + era * 400 + i64::from(month <= 2),
            month: month as u8,
            day: day as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_one_to_one() {
        assert_eq!(
            Civil::of(0),
            Civil {
                year: 1970,
                month: 1,
                day: 1
            }
        );
        assert_eq!(Civil::new(2026, 5, 3).unwrap().days(), 20_576);
        let mut last = Civil::new(0, 12, 31).unwrap();
        let first = last.days() + 1;
        for days in first..first + 3 * ERA {
            let day = Civil::of(days);
            assert_eq!(day.days(), days);
            let next_day =
                (day.year, day.month) == (last.year, last.month) && day.day == last.day + 1;
            let next_month = day.day == 1 && last.day >= 28;
            assert!(next_day || next_month, "{last:?} {day:?}");
            last = day;
        }
        for (year, month, day) in [
            (2026, 2, 29),
            (1900, 2, 29),
            (2026, 13, 1),
            (2026, 0, 1),
            (2026, 4, 31),
            (2026, 1, 0),
        ] {
            assert_eq!(Civil::new(year, month, day), None);
        }
        assert!(Civil::new(2024, 2, 29).is_some() && Civil::new(2000, 2, 29).is_some());
    }
}
