// Package chaos does to a running `rollway serve` what can go wrong, under load,
// and compares what it has stored with what it has answered.
//
// Clients send numbered requests of one to five events, each with an idempotency
// key of its own, and repeat them until they are acknowledged. Some are sent again
// at once, some twice at the same time, some long after they were acknowledged, and
// some after a connection that was closed in the middle of the body. A third asks
// for synced lines. After each fault
//
//   - every event of every acknowledged request is looked up in the journal, at
//     the offset that its answer said: it is there once, whole;
//   - any other request is stored once and whole, or not at all;
//   - `rollway reconcile` finds in the journal what was counted.
//
// The kit is test code: TestFaults runs it briefly in the nightly run, and make
// bench-chaos as long as the table in docs/RELIABILITY.md takes. This package has what
// the table is made of.
package chaos
