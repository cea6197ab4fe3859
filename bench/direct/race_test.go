//go:build race

package direct

const raceEnabled = true
