package direct

import (
	"errors"
	"os"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/shard"
)

type ownOptions struct {
	block bool
	mode  direct.Mode
}

func ownDesign(name string, o ownOptions) Design {
	return Design{Name: name, Own: true, Open: openOwn(o)}
}

// own is shard.Writer over a file.
type own struct {
	*shard.Writer
	f    *os.File
	tail *direct.Tail
}

func openOwn(o ownOptions) func(Config) (Logger, error) {
	return func(c Config) (Logger, error) {
		f, err := os.OpenFile(c.Path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		tail, err := direct.New(f, direct.Options{Mode: o.mode})
		if err != nil {
			return nil, err
		}
		options := shard.Options{BufferSize: c.BufferSize, Shards: c.Shards, FlushInterval: c.Flush, NoLossNotice: true}
		if o.block {
			options.Full = shard.Block
		}
		w, err := shard.New(tail, options)
		if err != nil {
			return nil, err
		}
		return &own{w, f, tail}, nil
	}
}

func (o *own) Close() error { return errors.Join(o.Writer.Close(), o.tail.Close(), o.f.Close()) }

func (o *own) Figures() Figures {
	s := o.Stats()
	return Figures{Flushes: s.Flushes, Mean: s.FlushMean, P99: s.FlushP99, Max: s.FlushMax, Memory: s.Memory}
}
