//go:build !linux

package relay

// splicer is what a pump needs to splice, which is for Linux.
type splicer struct{}

func (p *pump) spliceable() bool { return false }

func (p *pump) splice() (*side, error) { return nil, errNotSpliceable }

// pipes is for Linux.
type pipes struct{ max int }

func (p *pipes) trim()                   {}
func (p *pipes) close()                  {}
func (p *pipes) count() (open, lent int) { return 0, 0 }
