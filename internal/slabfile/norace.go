//go:build !race

package slabfile

const raceEnabled = false
