// Package integration runs the line writer's contract, and a stress test that
// follows every line, on the combinations of writers that users build. It is
// tests and nothing else.
package integration
