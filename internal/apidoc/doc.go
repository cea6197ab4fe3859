// Package apidoc keeps the public API of Rollway in golden files, one for each
// package, so that a change of it is seen in review. It is a test and nothing
// else.
package apidoc
