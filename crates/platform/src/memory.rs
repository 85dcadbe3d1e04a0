//! Memory of this process, where secrets are.

/// Has the kernel write no core file of this process, and keep its memory from other processes of the same user: they cannot
/// attach to it, nor read `/proc/PID/mem`, `environ`, `maps` or `fd`, which belong to root from now on. Programs that this one
/// starts are as they always are. On Linux; elsewhere nothing changes.
///
/// # Errors
/// What the kernel says if it refuses.
pub fn hide_memory() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    #[test]
    fn the_kernel_dumps_no_hidden_memory() {
        super::hide_memory().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
