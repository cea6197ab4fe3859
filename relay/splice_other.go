//go:build !linux

package relay

import "time"

// splicer is what a pump needs to splice, which is for Linux.
type splicer struct{}

func (p *pump) spliceable() bool { return false }

func (p *pump) splice() (*side, error) { return nil, errBuffers }

func (p *pump) isBulk(int, int) bool { return false }

func sleepShortly(time.Duration) {}

func (s *side) setLowWater(int) {}

func defaultBudget() int64 { return 0 }

func (s *side) limitUnsent(int) {}

func (s *side) setReceiveBuffer(int, bool) {}

func (p *pump) crowded() bool { return false }

func (p *pump) copyPeeked() (bool, *side, error) { return false, nil, errBuffers }

// pipes is for Linux.
type pipes struct{ max int }

func (p *pipes) trim()                   {}
func (p *pipes) close()                  {}
func (p *pipes) count() (open, lent int) { return 0, 0 }
