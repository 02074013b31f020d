//! What memory there is, and what the process took: as Linux tells it, nothing elsewhere.
//!
//! A process may be in a cgroup whose limit is below what the machine has, in any of that group's
//! parents too; the least of all counts. Pages that a group uses for files that nothing holds open
//! to write are given back when asked for, so they count as available.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Budgets found by [`available_memory`] are multiples of this.
const UNIT: u64 = 16 << 20;

/// The budget where none is given: seven eighths of what the machine and the process's cgroups have
/// available, rounded down to 16 MiB. The rest is for others, who take some while a run goes on.
pub fn available_memory() -> Option<u64> {
    let bytes = available(Path::new("/proc"), Path::new("/sys/fs/cgroup"))?;
    Some((bytes / 8 * 7) / UNIT * UNIT)
}

/// The most bytes that the process has had resident so far, as the operating system counts them.
pub fn peak_resident_memory() -> Option<u64> {
    kilobytes(&read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

fn available(proc: &Path, cgroup: &Path) -> Option<u64> {
    let machine = kilobytes(&read_to_string(proc.join("meminfo")).ok()?, "MemAvailable:");
    let groups = read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (root, files) = match controllers {
            "" => (
                cgroup.to_path_buf(),
                ["memory.max", "memory.current", "inactive_file"],
            ),
            _ if controllers.split(',').any(|c| c == "memory") => (
                cgroup.join("memory"),
                [
                    "memory.limit_in_bytes",
                    "memory.usage_in_bytes",
                    "total_inactive_file",
                ],
            ),
            _ => return None,
        };
        parents(&root, path)
            .filter_map(|group| left(&group, files))
            .min()
    });
    limits.chain(machine).min()
}

/// The group's folder and all above it, as far as they are to be seen: in a container the path is
/// often that of the host.
fn parents(root: &Path, path: &str) -> impl Iterator<Item = PathBuf> {
    let path = Path::new(path.trim_start_matches('/'));
    path.ancestors()
        .map(|p| root.join(p))
        .collect::<Vec<_>>()
        .into_iter()
}

/// What a group's limit leaves: none without a limit.
fn left(group: &Path, [limit, usage, reclaimable]: [&str; 3]) -> Option<u64> {
    let number = |file: &str| {
        read_to_string(group.join(file))
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    };
    let (limit, usage) = (number(limit)?, number(usage)?);
    let stat = read_to_string(group.join("memory.stat")).unwrap_or_default();
    Some(limit.saturating_sub(usage.saturating_sub(field(&stat, reclaimable).unwrap_or(0))))
}

/// The number after `name`, in a file of names and numbers.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text
        .lines()
        .find(|l| l.split_whitespace().next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is available where the kernel's files are these.
    fn with(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        available(&root.path().join("proc"), &root.path().join("cgroup"))
    }

    const MACHINE: (&str, &str) = (
        "proc/meminfo",
        "MemTotal: 4000 kB\nMemAvailable:    3000 kB\n",
    );

    #[test]
    fn the_machine_is_asked() {
        assert_eq!(with(&[MACHINE]), Some(3000 << 10));
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn a_group_limits_and_its_cache_does_not_count() {
        let files = [
            MACHINE,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("cgroup/a/b/memory.max", "max\n"),
            ("cgroup/a/b/memory.current", "500\n"),
            ("cgroup/a/memory.max", "10000\n"),
            ("cgroup/a/memory.current", "6000\n"),
            ("cgroup/a/memory.stat", "anon 1\ninactive_file 1500\n"),
        ];
        assert_eq!(with(&files), Some(5500));
    }

    #[test]
    fn a_group_of_version_1_seen_from_a_container() {
        let files = [
            MACHINE,
            (
                "proc/self/cgroup",
                "5:cpu,cpuacct:/x\n4:memory:/docker/0123\n",
            ),
            ("cgroup/memory/memory.limit_in_bytes", "9000\n"),
            ("cgroup/memory/memory.usage_in_bytes", "1000\n"),
            (
                "cgroup/memory/memory.stat",
                "inactive_file 7\ntotal_inactive_file 100\n",
            ),
        ];
        assert_eq!(with(&files), Some(8100));
    }

    #[test]
    fn a_group_without_a_limit_of_version_1() {
        let files = [
            MACHINE,
            ("proc/self/cgroup", "4:memory:/\n"),
            (
                "cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("cgroup/memory/memory.usage_in_bytes", "1000\n"),
        ];
        assert_eq!(with(&files), Some(3000 << 10));
    }

    #[test]
    fn this_process_has_a_peak() {
        assert!(peak_resident_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
