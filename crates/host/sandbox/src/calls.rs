//! Lists of system calls. Each call has a reason: who makes it, and when.
//!
//! [`list`] refuses the calls of [`NEVER`] when it is compiled.

use nix::libc::{self, c_int};

/// A system call.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The name in the manual.
    pub name: &'static str,
    /// The number on this processor.
    pub number: i64,
    /// The condition on an argument; `None` allows every argument.
    pub only: Option<Only>,
    /// The caller, and the occasion.
    pub why: &'static str,
}

/// A condition on an argument. Arguments are counted from 0; their lower 32 bits are compared.
#[derive(Debug, Clone, Copy)]
pub enum Only {
    /// This value.
    Is(u8, u64),
    /// A value with none of these bits.
    Without(u8, u64),
    /// The number of the calling process.
    OwnProcess(u8),
}

impl Call {
    /// A call with any arguments.
    #[must_use]
    pub const fn new(name: &'static str, number: i64, why: &'static str) -> Self {
        Self {
            name,
            number,
            only: None,
            why,
        }
    }

    /// The call, if its arguments are such.
    #[must_use]
    pub const fn only(self, only: Only) -> Self {
        Self {
            only: Some(only),
            ..self
        }
    }
}

/// Checks a list.
///
/// # Panics
/// When the list has a call of [`NEVER`]; of a constant that is an error of the compiler.
#[must_use]
pub const fn list<const N: usize>(calls: [Call; N]) -> [Call; N] {
    let mut at = 0;
    while at < N {
        let mut never = 0;
        while never < NEVER.len() {
            assert!(calls[at].number != NEVER[never], "call of NEVER in a list");
            never += 1;
        }
        at += 1;
    }
    calls
}

/// Calls that no list may have. A ring carries out calls that the filter does not see; the others run another program,
/// look into another process, or change what the kernel enforces.
pub const NEVER: [i64; 22] = [
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_pivot_root,
    libc::SYS_personality,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
];

const EXECUTABLE: u64 = bits(libc::PROT_EXEC);

/// What every process of this program needs: memory, clocks, signals, its end.
pub const ORDINARY: &[Call] = &list([
    // Memory is never executable.
    Call::new("mmap", libc::SYS_mmap, "the allocator").only(Only::Without(2, EXECUTABLE)),
    Call::new("mprotect", libc::SYS_mprotect, "the allocator").only(Only::Without(2, EXECUTABLE)),
    Call::new("munmap", libc::SYS_munmap, "the allocator"),
    Call::new("mremap", libc::SYS_mremap, "realloc(3) of a long message"),
    Call::new(
        "madvise",
        libc::SYS_madvise,
        "the allocator gives pages back",
    ),
    Call::new("brk", libc::SYS_brk, "the C library's allocator"),
    Call::new("futex", libc::SYS_futex, "locks of the standard library"),
    Call::new(
        "sched_yield",
        libc::SYS_sched_yield,
        "the allocator's locks",
    ),
    Call::new("getrandom", libc::SYS_getrandom, "the keys of hash tables"),
    Call::new(
        "clock_gettime",
        libc::SYS_clock_gettime,
        "where the vDSO has no clock",
    ),
    Call::new("clock_nanosleep", libc::SYS_clock_nanosleep, "pauses"),
    Call::new("getpid", libc::SYS_getpid, "abort(3)"),
    Call::new(
        "gettid",
        libc::SYS_gettid,
        "abort(3), the message of a panic",
    ),
    Call::new("tgkill", libc::SYS_tgkill, "abort(3)").only(Only::OwnProcess(0)),
    Call::new("rt_sigprocmask", libc::SYS_rt_sigprocmask, "abort(3)"),
    Call::new(
        "rt_sigaction",
        libc::SYS_rt_sigaction,
        "the handler of a full stack",
    ),
    Call::new(
        "rt_sigreturn",
        libc::SYS_rt_sigreturn,
        "the end of that handler",
    ),
    Call::new(
        "sigaltstack",
        libc::SYS_sigaltstack,
        "the stack of that handler",
    ),
    Call::new(
        "restart_syscall",
        libc::SYS_restart_syscall,
        "the kernel, after SIGCONT",
    ),
    Call::new(
        "getrusage",
        libc::SYS_getrusage,
        "the limit of processor time",
    ),
    // Of another process the call would be an attack.
    Call::new("prlimit64", libc::SYS_prlimit64, "the limits of a request").only(Only::Is(0, 0)),
    Call::new("exit", libc::SYS_exit, "the end of a thread"),
    Call::new("exit_group", libc::SYS_exit_group, "the end"),
]);

/// The needs of a process with given sockets.
pub const STREAM: &[Call] = &list([
    Call::new("read", libc::SYS_read, "standard input"),
    Call::new(
        "write",
        libc::SYS_write,
        "standard error: the message of a panic",
    ),
    Call::new(
        "writev",
        libc::SYS_writev,
        "standard error: the message of a panic",
    ),
    Call::new("recvfrom", libc::SYS_recvfrom, "requests"),
    Call::new("sendto", libc::SYS_sendto, "answers"),
    Call::new("close", libc::SYS_close, "the end"),
    Call::new(
        "fcntl",
        libc::SYS_fcntl,
        "close(2) in builds with assertions",
    )
    .only(Only::Is(1, bits(libc::F_GETFD))),
]);

/// What a process needs that waits for many connections at once, and takes descriptors from another process.
pub const EVENTS: &[Call] = &list([
    #[cfg(target_arch = "x86_64")]
    Call::new("epoll_wait", libc::SYS_epoll_wait, "the runtime"),
    Call::new("epoll_pwait", libc::SYS_epoll_pwait, "the runtime"),
    Call::new(
        "epoll_ctl",
        libc::SYS_epoll_ctl,
        "connections that come and go",
    ),
    Call::new("recvmsg", libc::SYS_recvmsg, "packets with descriptors"),
    Call::new("sendmsg", libc::SYS_sendmsg, "packets"),
    Call::new(
        "shutdown",
        libc::SYS_shutdown,
        "the end of a connection that others have as well",
    ),
    Call::new(
        "getsockopt",
        libc::SYS_getsockopt,
        "the error of a connection",
    )
    // Of another level, the call reads the keys of a connection that the kernel encrypts.
    .only(Only::Is(1, bits(libc::SOL_SOCKET))),
    Call::new(
        "fcntl",
        libc::SYS_fcntl,
        "the runtime, in builds with assertions",
    )
    .only(Only::Is(1, bits(libc::F_GETFL))),
]);

/// The needs of a process that gets connections with the addresses of clients.
pub const ADDRESSES: &[Call] = &list([
    Call::new("getpeername", libc::SYS_getpeername, "whose connection"),
    Call::new("getsockname", libc::SYS_getsockname, "at which address"),
]);

/// The needs of a reader of files, at the start and after changes.
pub const FILES: &[Call] = &list([
    Call::new("openat", libc::SYS_openat, "files that changed"),
    Call::new("fstat", libc::SYS_fstat, "their sizes and times"),
    Call::new("newfstatat", libc::SYS_newfstatat, "their sizes and times"),
    Call::new("statx", libc::SYS_statx, "their sizes and times"),
    Call::new("lseek", libc::SYS_lseek, "how much is left to read"),
    Call::new(
        "getcwd",
        libc::SYS_getcwd,
        "a relative path of the settings",
    ),
]);

/// What a process needs that starts threads of its own.
pub const THREADS: &[Call] = &list([
    Call::new("clone3", libc::SYS_clone3, "a thread"),
    Call::new("clone", libc::SYS_clone, "a thread, on an older kernel"),
    Call::new("set_robust_list", libc::SYS_set_robust_list, "a new thread"),
    Call::new("rseq", libc::SYS_rseq, "a new thread"),
    Call::new(
        "sched_getaffinity",
        libc::SYS_sched_getaffinity,
        "the stack of a new thread",
    ),
    Call::new("prctl", libc::SYS_prctl, "the name of a new thread")
        .only(Only::Is(0, bits(libc::PR_SET_NAME))),
    Call::new("prctl", libc::SYS_prctl, "the allocator names new memory")
        .only(Only::Is(0, bits(libc::PR_SET_VMA))),
]);

/// What a server needs with listening sockets and datagrams. The server reaches no socket that it did not have at its start: a rule
/// of the file system (landlock(7)) does not cover sockets with names in it, and the processes of this program have one user.
pub const SERVER: &[Call] = &list([
    Call::new("accept4", libc::SYS_accept4, "connections of clients"),
    Call::new("recvmmsg", libc::SYS_recvmmsg, "datagrams"),
    Call::new("sendmmsg", libc::SYS_sendmmsg, "answers"),
    Call::new("setsockopt", libc::SYS_setsockopt, "no delay of answers"),
    Call::new("ioctl", libc::SYS_ioctl, "sockets that do not wait")
        .only(Only::Is(1, libc::FIONBIO)),
    Call::new("fcntl", libc::SYS_fcntl, "sockets that do not wait")
        .only(Only::Is(1, bits(libc::F_SETFL))),
]);

/// What a process needs that passes one end of a new pair of sockets to another process, by a socket that it has. Neither end has a
/// name or reaches one.
pub const PAIRS: &[Call] = &list([Call::new(
    "socketpair",
    libc::SYS_socketpair,
    "questions to the signer",
)
.only(Only::Is(1, bits(libc::SOCK_STREAM | libc::SOCK_CLOEXEC)))]);

/// What the allocator tries in a thread that starts late, and can do without.
pub const NUMA: &[Call] = &list([
    Call::new(
        "faccessat",
        libc::SYS_faccessat,
        "the allocator looks for NUMA nodes",
    ),
    Call::new(
        "getcpu",
        libc::SYS_getcpu,
        "the allocator looks for its NUMA node",
    ),
    #[cfg(target_arch = "x86_64")]
    Call::new(
        "access",
        libc::SYS_access,
        "the allocator looks for NUMA nodes",
    ),
]);

/// What libraries try and can do without.
pub const LOOKING: &[Call] = &list([
    Call::new(
        "openat",
        libc::SYS_openat,
        "the allocator looks for /proc and /sys; a panic, for the program",
    ),
    Call::new(
        "newfstatat",
        libc::SYS_newfstatat,
        "a panic looks for the program",
    ),
    Call::new("statx", libc::SYS_statx, "a panic looks for the program"),
    Call::new(
        "faccessat",
        libc::SYS_faccessat,
        "the allocator looks for NUMA nodes",
    ),
    Call::new(
        "readlinkat",
        libc::SYS_readlinkat,
        "a panic looks for the program",
    ),
    Call::new("getcwd", libc::SYS_getcwd, "a panic shortens paths"),
    Call::new(
        "getcpu",
        libc::SYS_getcpu,
        "the allocator looks for its NUMA node",
    ),
    // Without the entry a process ends at the first growth of memory.
    Call::new("prctl", libc::SYS_prctl, "the allocator names new memory")
        .only(Only::Is(0, bits(libc::PR_SET_VMA))),
    #[cfg(target_arch = "x86_64")]
    Call::new(
        "open",
        libc::SYS_open,
        "the allocator looks for /proc and /sys",
    ),
    #[cfg(target_arch = "x86_64")]
    Call::new(
        "access",
        libc::SYS_access,
        "the allocator looks for NUMA nodes",
    ),
    #[cfg(target_arch = "x86_64")]
    Call::new(
        "readlink",
        libc::SYS_readlink,
        "a panic looks for the program",
    ),
]);

/// The bits of a flag of the C library, none of which is the sign.
const fn bits(flag: c_int) -> u64 {
    flag.unsigned_abs() as u64
}
