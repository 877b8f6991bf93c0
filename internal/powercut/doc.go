// Package powercut cuts the power under a process in the middle of its writes: what was not synced
// is lost, as it is from a real machine, and as it is not when a process is merely killed.
//
// A [Disk] is a file system in an image file. A [Machine] is a child process that has it mounted,
// in a mount namespace of its own: nobody else sees the mount, and the system takes it away with
// the process, however that ends. [Machine.Cut] stops the file system without flushing its log, and
// then kills the process; the next machine mounts what had reached the disk by then.
//
// The page cache and the file system's log are lost; the cache inside a drive is not, and no sector
// is torn. Needs Linux, root, loop devices, mount and mkfs: tests are skipped without them, unless
// POWERCUT_REQUIRE names the file system, as CI does. POWERCUT_CUTS says how many cuts a test
// makes.
package powercut
