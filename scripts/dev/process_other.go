//go:build !unix

package main

import (
	"errors"
	"os/exec"
	"runtime"
)

func ownGroup(*exec.Cmd) {}

func interruptGroup(*exec.Cmd) error {
	return errors.New("no process groups on " + runtime.GOOS)
}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
