//! The programs in `examples/` do what their documentation says. `cargo test` builds them; `--test
//! examples` alone does not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

fn example(name: &str) -> Command {
    let tests: PathBuf = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(|deps| deps.parent()).unwrap();
    let program = built.join("examples").join(name);
    assert!(program.exists(), "not built: run all of cargo test");
    let mut command = Command::new(program);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether any of a few attempts succeeds. At a large ε a word comes back unchanged, but one draw in
/// 1,000 falls beyond γ. So an attempt with seven words fails less than once in 100 times, and all
/// four do less than once in 10⁸ times.
fn once(mut attempt: impl FnMut() -> bool) -> bool {
    (0..4).any(|_| attempt())
}

#[test]
fn batch() {
    let lines = "A cup of coffee, please!\n\nSome tea.\n";
    let unchanged = once(|| {
        let mut child = example("batch").arg("1e9").spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(lines.as_bytes()).unwrap();
        drop(input);
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success());
        // The guarantee states the ε.
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(said.contains("1000000000"), "{said}");
        let drawn = String::from_utf8(done.stdout).unwrap();
        assert_eq!(drawn.lines().count(), 3);
        drawn.to_lowercase() == lines.to_lowercase()
    });
    assert!(unchanged);

    let done = example("batch").arg("-1").output().unwrap();
    assert!(!done.status.success() && done.stdout.is_empty());
    assert!(String::from_utf8(done.stderr).unwrap().contains("epsilon"));
}

#[test]
fn service() {
    let mut child = Running(
        example("service")
            .args(["1e9", "127.0.0.1:0"])
            .spawn()
            .unwrap(),
    );
    let mut said = BufReader::new(child.0.stderr.take().unwrap());
    let mut address = String::new();
    said.read_line(&mut address).unwrap();
    let connect = || TcpStream::connect(address.trim()).unwrap();
    let (first, mut second) = (connect(), connect());
    let mut answers = BufReader::new(first.try_clone().unwrap()).lines();
    let mut answer = |text: &str| {
        writeln!(&first, "{text}").unwrap();
        answers.next().unwrap().unwrap()
    };
    for text in ["a cup of coffee, please!", "", "some tea."] {
        assert!(once(|| answer(text) == text), "{text}");
    }
    // Not UTF-8: the connection ends, and the others go on.
    second.write_all(b"\xff\xfe\n").unwrap();
    assert_eq!(second.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert!(once(|| answer("tea") == "tea"));
}
