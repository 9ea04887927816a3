//! Metrics of the process, under the names of Prometheus's own clients.

use crate::metrics::{Family, MetricKind};

/// Reads the metrics from the operating system; missing ones are omitted.
pub fn families(start: f64) -> Vec<Family> {
    let gauge = |name, help, value: Option<f64>| Family {
        name,
        kind: MetricKind::Gauge,
        help,
        samples: value
            .map(|value| (String::new(), value))
            .into_iter()
            .collect(),
    };
    let pages = pages();
    let page = system(libc::_SC_PAGESIZE);
    let bytes = |at: usize| Some(*pages.as_ref()?.get(at)? * page?);
    let mut all = vec![
        Family {
            kind: MetricKind::Counter,
            ..gauge(
                "process_cpu_seconds_total",
                "Processor time, of the user and of the system.",
                processor_time(),
            )
        },
        gauge("process_virtual_memory_bytes", "Virtual memory.", bytes(0)),
        gauge(
            "process_resident_memory_bytes",
            "Resident memory.",
            bytes(1),
        ),
        gauge(
            "process_open_fds",
            "File descriptors that are open.",
            open_files(),
        ),
        gauge(
            "process_max_fds",
            "File descriptors that may be open.",
            most_files(),
        ),
        gauge(
            "process_start_time_seconds",
            "When the process started, in seconds since 1970.",
            Some(start),
        ),
    ];
    all.retain(|family| !family.samples.is_empty());
    all
}

/// Virtual and resident memory in pages.
fn pages() -> Option<Vec<f64>> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().map(|n| n.parse().ok()).collect()
}

fn open_files() -> Option<f64> {
    // The listing itself has one file open.
    let all = std::fs::read_dir("/proc/self/fd").ok()?.count();
    Some(all.saturating_sub(1) as f64)
}

fn system(name: libc::c_int) -> Option<f64> {
    // SAFETY: it only takes a number.
    let value = unsafe { libc::sysconf(name) };
    (value > 0).then_some(value as f64)
}

fn processor_time() -> Option<f64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: it writes to its argument, which is valid; zeros are a valid value of it.
    let usage = unsafe {
        (libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) == 0).then(|| usage.assume_init())
    }?;
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    Some(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

fn most_files() -> Option<f64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: it writes to its argument, which is valid.
    let done = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    done.then_some(limit.rlim_cur as f64)
}
