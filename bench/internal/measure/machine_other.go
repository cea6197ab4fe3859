//go:build !linux

package measure

import (
	"runtime"
	"time"
)

// machineCPU is not known here: no sample counts as noisy.
func machineCPU() time.Duration { return 0 }

func cpuName() string { return "unknown" }

func kernel() string { return runtime.GOOS }
