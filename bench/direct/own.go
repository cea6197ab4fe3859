package direct

import (
	"time"

	"github.com/rollway/rollway/shard"
)

// own is shard.Writer over a file.
type own struct{ *shard.Writer }

type ownOptions struct {
	full shard.Policy
	mode shard.Mode
	// 0 is the default of package shard.
	terms, chunk int
	max          int64
	framed       bool
	keep         int
}

func ownDesign(name string, o ownOptions) Design {
	return Design{Name: name, Own: true, Open: func(c Config) (Logger, error) { return openOwn(c, o) }}
}

func openOwn(c Config, o ownOptions) (own, error) {
	w, err := shard.Open(c.Path, shard.Options{
		BufferSize: c.BufferSize, Shards: c.Shards, FlushInterval: c.Flush, NoLossNotice: true,
		CloseTimeout: time.Minute, // other programs may keep the disk busy
		Full:         o.full, TermsPerShard: o.terms, File: shard.FileOptions{Mode: o.mode, MaxSize: o.max, Chunk: o.chunk, Framed: o.framed, Keep: o.keep},
	})
	return own{w}, err
}

func (o own) Figures() Figures {
	s := o.Stats()
	return Figures{Flushes: s.Flushes, Mean: s.FlushMean, P95: s.FlushP95, P99: s.FlushP99, Max: s.FlushMax, Memory: s.Memory}
}
