//go:build race

package slabfile

const raceEnabled = true
