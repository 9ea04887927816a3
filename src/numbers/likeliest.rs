//! The likeliest replacements of a number or a date, in written form.

use std::collections::HashMap;

use super::form::Form;
use super::{Date, Figure, Figures, Number};

/// Only draws within REACH/ε steps of the grid are listed: the others have a probability of at most exp(-REACH).
const REACH: f64 = 16.0;
/// The most of them, to either side.
const FARTHEST: f64 = (1u64 << 13) as f64;

/// The likeliest replacements of a number or a date.
#[derive(Clone, Debug, PartialEq)]
pub struct Likeliest {
    /// The probability that it is released as it was written.
    pub unchanged: f64,
    /// Replacements in written form with their probabilities, the likeliest first. Points of the
    /// grid that a form writes alike are one replacement.
    pub replacements: Vec<(String, f64)>,
}

impl Figures {
    /// The `most` likeliest replacements of a figure that was written as `text`, off by a probability of 10⁻⁶ at
    /// most; none where the grid is so fine that more than 2¹³ points to either side have probabilities that count.
    pub fn likeliest(&self, text: &str, figure: &Figure, most: usize) -> Option<Likeliest> {
        let (law, ends) = match (&figure.form, &self.numbers, &self.dates) {
            (Form::Number(_), Some(numbers), _) => (Number::law(numbers), numbers.ends()),
            (Form::Date(form), _, Some(dates)) => {
                (Date::law(dates), dates.grid(form.has_year()).range())
            }
            _ => return None,
        };
        let far = (REACH / law.epsilon()).ceil();
        if far > FARTHEST {
            return None;
        }
        let (first, law) = law.near(figure.place, ends, far as i64);
        let mut all: HashMap<String, f64> = HashMap::new();
        for (place, p) in (first..).zip(law) {
            *all.entry(self.write(&figure.form, place)).or_default() += p;
        }
        let unchanged = all.get(text).copied().unwrap_or(0.0);
        let mut replacements: Vec<(String, f64)> = all.into_iter().collect();
        replacements.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        replacements.truncate(most);
        Some(Likeliest {
            unchanged,
            replacements,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DateUnit, NumberSettings, Scale};
    use super::*;

    #[test]
    fn replacements_are_those_of_the_law() {
        let mut settings = NumberSettings::new(0.5, Scale::Linear);
        (settings.low, settings.high, settings.unit) = (Some(0.0), Some(20.0), Some(0.5));
        let numbers = Number::new(&settings).unwrap();
        let dates = Date::new(0.1, DateUnit::Day, Date::RANGE, None).unwrap();
        let all = Figures {
            numbers: Some(numbers.clone()),
            dates: Some(dates),
        };
        let figure = all.read("€3").unwrap();
        let found = all.likeliest("€3", &figure, 100).unwrap();
        // Half steps are written as whole numbers: the law of the grid, added up.
        let law = numbers.probabilities(figure.place).unwrap();
        let mut expected: HashMap<String, f64> = HashMap::new();
        for (place, p) in law.into_iter().enumerate() {
            *expected
                .entry(format!("€{:.0}", place as f64 / 2.0))
                .or_default() += p;
        }
        assert_eq!(found.replacements.len(), expected.len());
        for (text, p) in &found.replacements {
            assert!((p - expected[text]).abs() < 1e-6, "{text} {p}");
        }
        let same = found.replacements.iter().find(|(text, _)| text == "€3");
        assert_eq!(Some(found.unchanged), same.map(|(_, p)| *p));
        let falls = |pair: &[(String, f64)]| pair[0].1 >= pair[1].1;
        assert!(found.replacements.windows(2).all(falls));
        let day = all.read("3 May").unwrap();
        let found = all.likeliest("03 May", &day, 3).unwrap();
        assert_eq!((found.unchanged, found.replacements.len()), (0.0, 3));
        let mut names: Vec<&str> = found.replacements.iter().map(|(text, _)| &**text).collect();
        names.sort_unstable();
        assert_eq!(names, ["2 May", "3 May", "4 May"]);
        settings.epsilon = 0.001;
        let fine = Figures {
            numbers: Some(Number::new(&settings).unwrap()),
            dates: None,
        };
        assert_eq!(fine.likeliest("€3", &figure, 8), None);
    }
}
