//go:build !linux

package pace

import "time"

// An Alarm wakes one goroutine.
type Alarm struct{}

// NewAlarm returns an Alarm.
func NewAlarm() (*Alarm, error) { return &Alarm{}, nil }

// Close does nothing here.
func (a *Alarm) Close() error { return nil }

func (a *Alarm) sleep(d time.Duration) { time.Sleep(d) }
