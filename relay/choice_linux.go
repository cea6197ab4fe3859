package relay

// A choice is between buffers and splice, for one direction between plain
// sockets. Splice saves the copy and has the higher price for a call. So a
// direction begins with buffers, splices once reads fill them, and takes buffers
// again when splice moves little at a time.
type choice struct {
	full   int    // reads in a row that filled the buffer
	rounds int    // of splice, of the last bulkRounds
	mark   uint64 // pump.bytes before them
	never  bool   // the kernel cannot splice these sockets
}

const (
	fullReads  = 4        // in a row, after which the direction splices
	bulkRounds = 16       // of splice, over which the average counts
	bulkLeast  = 32 << 10 // the average below which splice is left
)

// isBulk reports whether the direction is to splice, after a round of n bytes
// through a buffer of most.
func (p *pump) isBulk(n, most int) bool {
	c := &p.choice
	if n < most || c.never || !p.spliceable() {
		c.full = 0
		return false
	}
	c.full++
	return c.full >= fullReads
}

// startBulk begins to splice.
func (p *pump) startBulk() {
	p.lowWater(false)
	p.choice = choice{mark: p.bytes.Load()}
}

// staysBulk reports whether splice is to go on after a round.
func (p *pump) staysBulk() bool {
	c := &p.choice
	if c.rounds++; c.rounds < bulkRounds {
		return true
	}
	moved := p.bytes.Load() - c.mark
	c.rounds, c.mark = 0, c.mark+moved
	return moved >= bulkRounds*bulkLeast
}
