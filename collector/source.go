package collector

import (
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/query"
)

// source is the journal as package query reads it: its readers are an interface
// there.
type source struct{ *journal.Journal }

func (s source) NewReader(from uint64) query.Reader { return s.Journal.NewReader(from) }
