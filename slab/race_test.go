//go:build race

package slab_test

const raceEnabled = true
