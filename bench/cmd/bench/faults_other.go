//go:build !linux

package main

// faultPrograms lists none: they kill, mount and trace processes of Linux.
func faultPrograms() []program { return nil }
