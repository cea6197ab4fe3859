package testkit

import (
	"encoding/json"
	"testing"
)

// An Attack is a row of the table of make redteam: what a test has done to the collector,
// and what the collector did.
type Attack struct {
	Attack   string `json:"attack"`
	Times    int    `json:"times"`    // how often it was made
	Promised string `json:"promised"` // what must be true, in a few words
	Measured string `json:"measured"` // the same as it was found
}

// Report adds the attack to the table. Whether the promise was kept is the result of the
// test that reports it, so a test calls Report before it compares.
func (a Attack) Report(t testing.TB) {
	text, err := json.Marshal(a)
	OK(t, err)
	t.Attr(AttrAttack, string(text))
}
