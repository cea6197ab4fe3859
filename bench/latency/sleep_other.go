//go:build !linux

package latency

import "time"

func sharpenTimers() {}

func sleep(d time.Duration) { time.Sleep(d) }
