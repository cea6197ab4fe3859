// Package powercut is one test: file.File writes to a file
// system in user space (FUSE) that keeps an order of all that changes it. From
// that order the test makes what a power cut may leave, at each fsync and
// between, and reads it.
package powercut
