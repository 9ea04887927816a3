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

#[test]
fn batch() {
    let mut child = example("batch").arg("1e9").spawn().unwrap();
    let lines = "A cup of coffee, please!\n\nSome tea.\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success());
    // At such an ε every word comes back unchanged, and the guarantee states the ε.
    assert_eq!(
        String::from_utf8(done.stdout).unwrap().to_lowercase(),
        lines.to_lowercase()
    );
    assert!(
        String::from_utf8(done.stderr)
            .unwrap()
            .contains("1000000000")
    );

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
    for text in ["a cup of coffee, please!", "", "some tea."] {
        writeln!(&first, "{text}").unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), text);
    }
    // Not UTF-8: the connection ends, and the others go on.
    second.write_all(b"\xff\xfe\n").unwrap();
    assert_eq!(second.read_to_end(&mut Vec::new()).unwrap(), 0);
    writeln!(&first, "tea").unwrap();
    assert_eq!(answers.next().unwrap().unwrap(), "tea");
}
