//go:build !race

package slab_test

const raceEnabled = false
