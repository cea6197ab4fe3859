// Package smalldisk gives tests on Linux a small file system, tmpfs or ext4, that can run
// full, freeze or lose power. It is mounted in a namespace of its own, in a child process
// that runs the same test.
package smalldisk
