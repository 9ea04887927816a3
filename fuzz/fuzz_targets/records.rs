//! The reader of JSON records: any bytes give blocks or an error. Accepted input is JSON, is
//! returned byte for byte except the texts, and can be read again with the new texts. A document
//! read in parts gives the same result.

#![no_main]

use fastdx::text::records::{Block, Document, Fields, Limits, RecordError};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits {
    bytes: 4096,
    names: 8,
};

/// Puts a mark before each text.
fn marked(block: &Block) -> (Vec<String>, Vec<u8>) {
    let new: Vec<String> = block.texts().iter().map(|t| format!("\"é{t}")).collect();
    let out = block.replaced(&new).unwrap();
    (new, out)
}

/// Reads a document in parts of `size` bytes; returns its marked texts, and the document with them.
fn parts(data: &[u8], fields: &Fields, size: usize) -> Result<(Vec<String>, Vec<u8>), RecordError> {
    let mut document = Document::new(fields.clone(), LIMITS);
    let (mut texts, mut out) = (Vec::new(), Vec::new());
    for part in data.chunks(size).map(Some).chain([None]) {
        let block = match part {
            Some(part) => document.feed(part)?,
            None => document.end()?,
        };
        let (new, written) = marked(&block);
        texts.extend(new);
        out.extend(written);
    }
    Ok((texts, out))
}

fuzz_target!(|data: &[u8]| {
    let columns: [&[&str]; 4] = [
        &["t"],
        &["t", "t.u", "m[].t"],
        &["a[][].b", "a.b"],
        &["m[].c", "m[].c[].t"],
    ];
    let first = data.first().copied().unwrap_or(0);
    let size = usize::from(first % 61) + 1;
    for (columns, account) in columns
        .iter()
        .zip([None, Some("who"), None, Some("m[].who")])
    {
        let fields = Fields::new(columns, account).unwrap();
        if let Ok(block) = Block::of_lines(data, (1, 0), &fields, &LIMITS) {
            let (new, out) = marked(&block);
            let again = Block::of_lines(&out, (1, 0), &fields, &LIMITS).unwrap();
            assert_eq!(again.texts(), new);
            assert_eq!(again.others(), block.others());
            assert_eq!(again.payers(), block.payers());
            assert_eq!(again.replaced(&new).unwrap(), out);
        }
        let whole = parts(data, &fields, data.len().max(1));
        // With several errors, the parts determine which one is found first.
        let in_parts = parts(data, &fields, size);
        assert_eq!(whole.as_ref().ok(), in_parts.as_ref().ok());
        if let Ok((texts, out)) = whole
            && out.len() < LIMITS.bytes
        {
            let (again, _) = parts(&out, &fields, size).unwrap();
            assert_eq!(again.len(), texts.len());
        }
    }
});
