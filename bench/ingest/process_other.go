//go:build !linux

package ingest

import (
	"errors"
	"time"
)

// missing says why this machine cannot put servers under load, or "".
const missing = "Linux, for the CPU time and the memory of another process"

func cpuOf(int) (time.Duration, error) { return 0, errors.New(missing) }
func residentOf(int) (int64, error)    { return 0, errors.New(missing) }
