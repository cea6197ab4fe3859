package collector

import (
	"context"
	"errors"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/query"
)

// source is the journal as package query reads it.
type source struct{ *journal.Journal }

func (s source) NewReader(from uint64) query.Reader { return reader{s.Journal.NewReader(from)} }

type reader struct{ *journal.Reader }

func (r reader) Next(ctx context.Context) (query.Frame, error) {
	f, err := r.Reader.Next(ctx)
	return frame(f), gap(err)
}

func (r reader) TryNext() (query.Frame, bool, error) {
	f, ok, err := r.Reader.TryNext()
	return frame(f), ok, gap(err)
}

func frame(f journal.Frame) query.Frame {
	return query.Frame{First: f.First, Records: f.Records, Lines: f.Lines}
}

// gap is err, in query's type if it tells of missing records.
func gap(err error) error {
	var g *journal.Gap
	if errors.As(err, &g) {
		return &query.Gap{From: g.From, To: g.To, Reason: g.Reason}
	}
	return err
}
