// Package smalldisk gives a test a file system that runs full: a tmpfs in a
// mount namespace of its own, in a child process that runs the same test. It is
// for tests, and on Linux.
package smalldisk
