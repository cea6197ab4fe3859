//go:build unix && !linux

package segment

var corrupt []error
