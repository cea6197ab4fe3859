//go:build !unix

package measure

import "time"

// ProcessCPU is not known here: the samples say 0.
func ProcessCPU() time.Duration { return 0 }
