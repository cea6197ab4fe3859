// Package chaos does to a running `rollway serve` what can go wrong, under load,
// and compares what it has stored with what it has answered.
//
// Clients send numbered requests of one to five events, each with an idempotency
// key of its own, and again until they are acknowledged: some at once a second
// time, some twice at the same time, some long after they were acknowledged, some
// after a connection that was closed in the middle of the body. A third asks for
// synced lines. After each fault
//
//   - every event of every acknowledged request is looked up in the journal, at
//     the offset that its answer said: it is there once, whole;
//   - of every other request all events are there once, or none;
//   - `rollway reconcile` finds that what was counted is what is there.
//
// The kit is test code: TestFaults runs it briefly in the nightly run, and make
// bench-chaos as long as the table in docs/RELIABILITY.md takes. This package has what
// the table is made of.
package chaos
