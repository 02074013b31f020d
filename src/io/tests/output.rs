use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::*;
use crate::io::output::PendingFile;

fn create(path: &Path) -> Result<FileSink> {
    FileSink::create(path, shape(1, 1, 2, 2), &WriteOptions::default())
}

fn complete(path: &Path) {
    let mut sink = create(path).unwrap();
    sink.write(0, 0, 0..2, &[&[1.0, 2.0], &[3.0, 4.0]]).unwrap();
    sink.finish().unwrap();
}

#[test]
fn nothing_is_seen_before_the_end_and_nothing_left_without_it() {
    let folder = folder();
    for name in ["a.npy", "a.png"] {
        let path = folder.path().join(name);
        let mut sink = create(&path).unwrap();
        sink.write(0, 0, 0..2, &[&[1.0, 2.0]]).unwrap();
        assert_eq!(names(folder.path()), [""; 0]);
        drop(sink);
        assert_eq!(names(folder.path()), [""; 0]);

        let mut sink = create(&path).unwrap();
        sink.write(0, 0, 0..2, &[&[1.0, 2.0]]).unwrap();
        let said = message(sink.finish());
        assert!(said.contains("2 elements were never given"), "{said}");
        drop(sink);
        assert_eq!(names(folder.path()), [""; 0]);

        complete(&path);
        assert_eq!(names(folder.path()), [name]);
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn what_stands_there_is_replaced_at_the_end() {
    let folder = folder();
    for name in ["a.npy", "a.png"] {
        let path = file(folder.path(), name, b"old");
        drop(create(&path).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        complete(&path);
        assert!(FileSource::open(&path, &ReadOptions::default()).is_ok());
        assert_eq!(names(folder.path()), [name]);
        std::fs::remove_file(path).unwrap();
    }
    // What a link points to is replaced, not the link.
    let path = file(folder.path(), "a.npy", b"old");
    let link = folder.path().join("link.npy");
    std::os::unix::fs::symlink("a.npy", &link).unwrap();
    complete(&link);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(FileSource::open(&path, &ReadOptions::default()).is_ok());
    assert_eq!(names(folder.path()), ["a.npy", "link.npy"]);
}

#[test]
fn two_outputs_of_one_name_do_not_mix() {
    let folder = folder();
    let path = folder.path().join("a.npy");
    let mut first = create(&path).unwrap();
    first.write(0, 0, 0..2, &[&[1.0; 2], &[1.0; 2]]).unwrap();
    complete(&path);
    first.finish().unwrap();
    let mut source = FileSource::open(&path, &ReadOptions::default()).unwrap();
    assert_eq!(read_in_order(&mut source, 2).unwrap(), [1.0; 4]);
    assert_eq!(names(folder.path()), ["a.npy"]);
}

#[test]
fn a_file_system_without_unnamed_files_gets_one_part_file() {
    let folder = folder();
    let path = file(folder.path(), "a.npy", b"old");
    let pending = PendingFile::create_named(&path).unwrap();
    assert_eq!(names(folder.path()), ["a.npy", "a.npy.part"]);
    let said = message(PendingFile::create_named(&path));
    assert!(said.contains("a.npy.part exists"), "{said}");
    drop(pending);
    assert_eq!(names(folder.path()), ["a.npy"]);
    let mut pending = PendingFile::create_named(&path).unwrap();
    pending.write_all_at(b"new", 0).unwrap();
    pending.commit().unwrap();
    assert_eq!(names(folder.path()), ["a.npy"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
}

#[test]
fn what_cannot_be_written_is_an_error_at_once() {
    let folder = folder();
    let check = |path: &Path, wanted: &str| {
        let said = message(create(path));
        let named = said.starts_with(&path.display().to_string());
        assert!(named && said.contains(wanted), "{said}");
    };
    let inside = folder.path().join("folder.npy");
    std::fs::create_dir(&inside).unwrap();
    check(&inside, "is a directory");
    check(&folder.path().join("none/a.npy"), "No such file");
    check(
        &file(folder.path(), "plain", b"").join("a.npy"),
        "Not a directory",
    );
    let device = folder.path().join("null.npy");
    std::os::unix::fs::symlink("/dev/null", &device).unwrap();
    check(&device, "not a regular file");
    check(Path::new("/proc/a.npy"), "");

    let path = folder.path().join("big.npy");
    let result = FileSink::create(
        &path,
        shape(1, 1, 1 << 30, 1 << 22),
        &WriteOptions::default(),
    );
    let said = message(result);
    assert!(
        said.contains("big.npy: no space: 18014398509482112 bytes needed"),
        "{said}"
    );

    // The super-user may write everything.
    std::fs::set_permissions(&inside, PermissionsExt::from_mode(0o500)).unwrap();
    let probe = inside.join("probe");
    if std::fs::write(&probe, b"").is_err() {
        check(&inside.join("a.npy"), "Permission denied");
    }
    let mut left = names(folder.path());
    left.retain(|name| !["folder.npy", "plain", "null.npy"].contains(&name.as_str()));
    assert_eq!(left, [""; 0]);
}

/// Runs test `name` of this module again, in a process of its own, in `folder`, by way of the shell
/// command `wrap` (which ends in `exec "$0" "$@"`). Returns whether it was reached and passed.
fn in_a_process(name: &str, wrap: &str, folder: &Path) -> bool {
    let output = Command::new("sh")
        .args(["-c", wrap])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("io::tests::output::{name}"),
            "--nocapture",
        ])
        .env("STRIPMILL_TEST_FOLDER", folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let reached = said.contains("1 passed") || said.contains("1 failed");
    assert!(!reached || output.status.success(), "{said}");
    reached
}

/// Writes images until the disk is full: the error must come and nothing may be left.
fn fill(folder: &Path) {
    let size = shape(1, 3, 512, 512);
    let noise: Vec<f32> = Rng::new(13)
        .bytes(size.elements() as usize)
        .into_iter()
        .map(|b| f32::from(b) / 255.0)
        .collect();
    let options = WriteOptions::default();
    let said = message(FileSink::create(folder.join("a.npy"), size, &options));
    assert!(
        said.contains("a.npy: ") && said.contains("bytes needed"),
        "{said}"
    );

    let mut sink = FileSink::create(folder.join("a.png"), size, &options).unwrap();
    let result = write_in_order(&mut sink, size, &noise, 1);
    let written = message(result.and_then(|()| sink.finish()));
    assert!(written.contains("a.png: "), "{written}");
    assert!(
        written.contains("No space") || written.contains("too large"),
        "{written}"
    );
    assert!(sink.finish().is_err());
    drop(sink);

    let mut sink = FileSink::create(folder.join("a.png"), size, &options).unwrap();
    let said = message(sink.spool(folder));
    assert!(
        said.contains("needed") || said.contains("kept in memory"),
        "{said}"
    );
    drop(sink);

    let value = crate::dense::Value::f32(&[1 << 19], vec![0.0; 1 << 19]);
    assert!(write_value(folder.join("a.npy"), value.view()).is_err());
    assert_eq!(names(folder), [""; 0]);
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped check must be seen")]
fn a_full_disk_leaves_nothing_behind() {
    if let Some(folder) = std::env::var_os("STRIPMILL_TEST_FOLDER") {
        return fill(Path::new(&folder));
    }
    let folder = folder();
    // A limit on a file's length, as a disk that fills up does not need rights.
    let limit = "trap '' XFSZ && ulimit -f 400 && exec \"$0\" \"$@\"";
    let name = "a_full_disk_leaves_nothing_behind";
    assert!(in_a_process(name, limit, folder.path()));
    // A small disk, where mounting is allowed.
    let mount = "mount -t tmpfs -o size=400k none \"$STRIPMILL_TEST_FOLDER\" && exec \"$0\" \"$@\"";
    let unshared = format!("exec unshare -rm sh -c '{mount}' \"$0\" \"$@\"");
    let small = in_a_process(name, &unshared, folder.path());
    if !small {
        eprintln!("a small file system could not be mounted: not tested");
    }
}
