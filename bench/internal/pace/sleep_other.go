//go:build !linux

package pace

import "time"

// SharpenTimers does nothing here.
func SharpenTimers() {}

func sleep(d time.Duration) { time.Sleep(d) }
